"""Node kinds of the TypeScript grammar, classified in one table.

Each named kind of the grammar has one role, which decides what the tree keeps of it, and traits,
which make the sets of kinds that passes read. To support a construct, give its kinds a role and
traits here, then handle the traits, or the kind itself, in the passes. A test compares the table
with the installed grammar.
"""

from collections.abc import Mapping
from enum import Enum, Flag, auto
from typing import Final, NamedTuple


class Role(Enum):
    """Treatment of the nodes of a kind."""

    READ = auto()
    """In the tree with their children; passes handle them."""
    LEAF = auto()
    """In the tree without their children."""
    ERASED = auto()
    """In the tree without their children; gone once types are stripped."""
    DROPPED = auto()
    """Not in the tree."""
    REFUSED = auto()
    """In the tree; a program that contains one is rejected (queries/forbidden.scm)."""
    INNER = auto()
    """Only inside nodes that are erased, leaves or refused, where no pass looks."""


class Trait(Flag):
    """Properties of kinds that passes share."""

    NONE = 0
    FUNCTION = auto()
    INLINE_FUNCTION = auto()
    """A function expression that runs when it is called."""
    PLAIN_FUNCTION = auto()
    """A function whose body runs when it is called by name; a generator's runs later."""
    GENERATOR = auto()
    HOISTED = auto()
    """A declaration that exists from the beginning of its scope."""
    CLASS = auto()
    CLASS_BODY = auto()
    """A body that may run with each object, or whenever a class is made."""
    INITIALIZER = auto()
    """A member of a class whose code runs like a method."""
    LOOP = auto()
    CONDITIONAL = auto()
    """A construct with a `condition` whose value is only tested."""
    BRANCH = auto()
    """A statement that always is a decision."""
    BRANCH_PART = auto()
    """A construct that never continues if its parts do not."""
    SHORT_CIRCUIT = auto()
    """An expression that may leave out its right side, depending on its operator."""
    EXIT = auto()
    """A jump out of a function."""
    JUMP = auto()
    STATEMENT_LIST = auto()
    SCOPE = auto()
    """A construct, other than a function or a class, with names of its own."""
    DECLARATION = auto()
    """A declaration that needs braces as the body of another statement."""
    IDENTIFIER = auto()
    BINDING = auto()
    """An identifier that may be declared or written."""
    USE = auto()
    """An identifier whose binding may be read."""
    KEY = auto()
    """An identifier that names a property."""
    UNBOUND = auto()
    """An identifier that has no binding."""
    PATTERN = auto()
    """A destructuring pattern."""
    PATTERN_PART = auto()
    MEMBER = auto()
    CHAIN_LINK = auto()
    """A link of a chain of members and calls, which `?.` may end."""
    WRAPPER = auto()
    """An expression whose value is that of the expression inside it."""
    CAST = auto()
    """An expression followed by a type."""
    CONTAINER = auto()
    """A literal of an object or a list, which makes a new value."""
    LIFTABLE = auto()
    """A literal that may become a parameter."""
    INSPECTING = auto()
    """A construct that only inspects a value, or makes a text or a number of it."""
    DISCARDING = auto()
    """A construct that ignores the values of its expressions."""
    VERBATIM = auto()
    """A leaf of the normal form with its text."""
    SILENT = auto()
    """A node without an effect on the program."""


_T = Trait
_READ: Final[Mapping[str, Trait]] = {
    # Functions
    "arrow_function": _T.FUNCTION | _T.INLINE_FUNCTION | _T.PLAIN_FUNCTION,
    "function_declaration": _T.FUNCTION | _T.PLAIN_FUNCTION | _T.HOISTED | _T.DECLARATION,
    "function_expression": _T.FUNCTION | _T.INLINE_FUNCTION | _T.PLAIN_FUNCTION,
    "generator_function": _T.FUNCTION | _T.GENERATOR,
    "generator_function_declaration": (_T.FUNCTION | _T.GENERATOR | _T.HOISTED | _T.DECLARATION),
    "method_definition": _T.FUNCTION,
    "formal_parameters": _T.NONE,
    "optional_parameter": _T.NONE,
    "required_parameter": _T.NONE,
    # Classes and enumerations
    "abstract_class_declaration": _T.CLASS | _T.DECLARATION,
    "class": _T.CLASS,
    "class_declaration": _T.CLASS | _T.DECLARATION,
    "accessibility_modifier": _T.SILENT,
    "class_body": _T.CLASS_BODY,
    "class_heritage": _T.NONE,
    "class_static_block": _T.CLASS_BODY | _T.INITIALIZER,
    "extends_clause": _T.NONE,
    "override_modifier": _T.SILENT,
    "public_field_definition": _T.INITIALIZER,
    "enum_assignment": _T.NONE,
    "enum_body": _T.NONE,
    "enum_declaration": _T.NONE,
    # Loops
    "for_statement": _T.LOOP | _T.SCOPE | _T.INSPECTING,
    "for_in_statement": _T.LOOP | _T.SCOPE,
    "while_statement": _T.LOOP | _T.CONDITIONAL | _T.INSPECTING,
    "do_statement": _T.LOOP | _T.CONDITIONAL | _T.INSPECTING,
    # Branches
    "if_statement": _T.BRANCH | _T.BRANCH_PART | _T.CONDITIONAL | _T.INSPECTING,
    "else_clause": _T.BRANCH_PART,
    "switch_statement": _T.BRANCH | _T.INSPECTING,
    "switch_body": _T.SCOPE,
    "switch_case": _T.STATEMENT_LIST | _T.INSPECTING,
    "switch_default": _T.STATEMENT_LIST,
    "try_statement": _T.BRANCH_PART,
    "catch_clause": _T.BRANCH_PART | _T.SCOPE,
    "finally_clause": _T.BRANCH_PART,
    # Jumps
    "return_statement": _T.EXIT | _T.JUMP,
    "throw_statement": _T.EXIT | _T.JUMP,
    "break_statement": _T.JUMP,
    "continue_statement": _T.JUMP,
    # Other statements
    "program": _T.STATEMENT_LIST,
    "statement_block": _T.STATEMENT_LIST | _T.SCOPE,
    "debugger_statement": _T.NONE,
    "empty_statement": _T.SILENT,
    "expression_statement": _T.INSPECTING | _T.DISCARDING,
    "labeled_statement": _T.NONE,
    "lexical_declaration": _T.DECLARATION,
    "variable_declaration": _T.NONE,
    "variable_declarator": _T.NONE,
    # Patterns
    "array_pattern": _T.PATTERN | _T.PATTERN_PART,
    "object_pattern": _T.PATTERN | _T.PATTERN_PART,
    "pair_pattern": _T.PATTERN_PART,
    "rest_pattern": _T.PATTERN_PART,
    "assignment_pattern": _T.NONE,
    "object_assignment_pattern": _T.NONE,
    # Chains of members and calls
    "member_expression": _T.MEMBER | _T.CHAIN_LINK,
    "subscript_expression": _T.MEMBER | _T.CHAIN_LINK,
    "call_expression": _T.CHAIN_LINK,
    "non_null_expression": _T.CHAIN_LINK | _T.WRAPPER,
    "arguments": _T.NONE,
    "optional_chain": _T.NONE,
    # Wrappers
    "as_expression": _T.WRAPPER | _T.CAST,
    "satisfies_expression": _T.WRAPPER | _T.CAST,
    "instantiation_expression": _T.WRAPPER,
    "parenthesized_expression": _T.WRAPPER,
    "type_assertion": _T.WRAPPER,
    # Operators
    "assignment_expression": _T.NONE,
    "augmented_assignment_expression": _T.SHORT_CIRCUIT,
    "await_expression": _T.NONE,
    "binary_expression": _T.SHORT_CIRCUIT | _T.INSPECTING,
    "new_expression": _T.NONE,
    "sequence_expression": _T.INSPECTING | _T.DISCARDING,
    "ternary_expression": _T.CONDITIONAL | _T.INSPECTING,
    "unary_expression": _T.INSPECTING | _T.LIFTABLE,
    "update_expression": _T.INSPECTING,
    "yield_expression": _T.NONE,
    # Values
    "array": _T.CONTAINER | _T.LIFTABLE,
    "object": _T.CONTAINER,
    "computed_property_name": _T.NONE,
    "pair": _T.NONE,
    "spread_element": _T.NONE,
    "false": _T.LIFTABLE,
    "null": _T.NONE,
    "super": _T.NONE,
    "template_string": _T.LIFTABLE,
    "template_substitution": _T.NONE,
    "escape_sequence": _T.VERBATIM,
    "string_fragment": _T.VERBATIM,
    "this": _T.NONE,
    "true": _T.LIFTABLE,
    "undefined": _T.NONE,
    "private_property_identifier": _T.IDENTIFIER | _T.UNBOUND,
}

_LEAVES: Final[Mapping[str, Trait]] = {
    "identifier": _T.IDENTIFIER | _T.BINDING | _T.USE,
    "property_identifier": _T.IDENTIFIER | _T.KEY | _T.UNBOUND,
    "shorthand_property_identifier": _T.IDENTIFIER | _T.KEY | _T.USE,
    "shorthand_property_identifier_pattern": _T.IDENTIFIER | _T.KEY | _T.BINDING,
    "statement_identifier": _T.IDENTIFIER | _T.UNBOUND,
    "type_identifier": _T.IDENTIFIER,
    "meta_property": _T.VERBATIM,
    "number": _T.LIFTABLE,
    "regex": _T.VERBATIM,
    "string": _T.LIFTABLE,
}

_ERASED: Final = """
    abstract_method_signature ambient_declaration asserts_annotation function_signature
    implements_clause index_signature interface_declaration method_signature type_alias_declaration
    type_annotation type_arguments type_parameters type_predicate_annotation
"""

_DROPPED: Final = "comment html_comment"

_REFUSED: Final = """
    decorator export_statement hash_bang_line import import_alias import_statement internal_module
    module with_statement
"""

_INNER: Final = """
    adding_type_annotation array_type asserts call_signature conditional_type constraint
    construct_signature constructor_type default_type existential_type extends_type_clause
    flow_maybe_type function_type generic_type index_type_query infer_type interface_body
    intersection_type literal_type lookup_type mapped_type_clause nested_identifier
    nested_type_identifier object_type omitting_type_annotation opting_type_annotation optional_type
    parenthesized_type predefined_type property_signature readonly_type rest_type
    template_literal_type template_type this_type tuple_type type_parameter type_predicate
    type_query union_type
    export_clause export_specifier import_attribute import_clause import_require_clause
    import_specifier named_imports namespace_export namespace_import
    jsx_text regex_flags regex_pattern
"""
"""Parts of types, then of imports and exports, then of leaves; `jsx_text` occurs in TSX only."""


class Kind(NamedTuple):
    """A row of the table."""

    name: str
    role: Role
    traits: Trait = Trait.NONE


ROWS: Final[tuple[Kind, ...]] = (
    *(Kind(name, Role.READ, traits) for name, traits in _READ.items()),
    *(Kind(name, Role.LEAF, traits) for name, traits in _LEAVES.items()),
    *(Kind(name, Role.ERASED) for name in _ERASED.split()),
    *(Kind(name, Role.DROPPED) for name in _DROPPED.split()),
    *(Kind(name, Role.REFUSED) for name in _REFUSED.split()),
    *(Kind(name, Role.INNER) for name in _INNER.split()),
)


def _in_role(*roles: Role) -> frozenset[str]:
    return frozenset(kind.name for kind in ROWS if kind.role in roles)


def _with(trait: Trait) -> tuple[str, ...]:
    """Return the kinds with a trait, in the order of the table."""
    return tuple(kind.name for kind in ROWS if trait in kind.traits)


LEAVES: Final = _in_role(Role.LEAF, Role.ERASED)
TYPES: Final = _in_role(Role.ERASED)
DROPPED: Final = _in_role(Role.DROPPED)

FUNCTIONS: Final = frozenset(_with(Trait.FUNCTION))
INLINE_FUNCTIONS: Final = frozenset(_with(Trait.INLINE_FUNCTION))
PLAIN_FUNCTIONS: Final = frozenset(_with(Trait.PLAIN_FUNCTION))
GENERATORS: Final = _with(Trait.GENERATOR)
HOISTED: Final = _with(Trait.HOISTED)
CLASSES: Final = _with(Trait.CLASS)
CLASS_BODIES: Final = _with(Trait.CLASS_BODY)
INITIALIZERS: Final = _with(Trait.INITIALIZER)
LOOPS: Final = _with(Trait.LOOP)
CONDITIONALS: Final = _with(Trait.CONDITIONAL)
BRANCHES: Final = _with(Trait.BRANCH)
BRANCH_PARTS: Final = _with(Trait.BRANCH_PART)
SHORT_CIRCUITS: Final = _with(Trait.SHORT_CIRCUIT)
EXITS: Final = _with(Trait.EXIT)
JUMPS: Final = _with(Trait.JUMP)
STATEMENT_LISTS: Final = _with(Trait.STATEMENT_LIST)
SCOPE_BLOCKS: Final = _with(Trait.SCOPE)
DECLARATIONS: Final = _with(Trait.DECLARATION)
IDENTIFIERS: Final = _with(Trait.IDENTIFIER)
BINDING_NAMES: Final = _with(Trait.BINDING)
USE_NAMES: Final = _with(Trait.USE)
KEY_NAMES: Final = _with(Trait.KEY)
UNBOUND_NAMES: Final = frozenset(_with(Trait.UNBOUND))
PATTERNS: Final = _with(Trait.PATTERN)
PATTERN_PARTS: Final = _with(Trait.PATTERN_PART)
MEMBERS: Final = frozenset(_with(Trait.MEMBER))
CHAIN_LINKS: Final = frozenset(_with(Trait.CHAIN_LINK))
WRAPPERS: Final = frozenset(_with(Trait.WRAPPER))
CASTS: Final = frozenset(_with(Trait.CAST))
CONTAINERS: Final = frozenset(_with(Trait.CONTAINER))
LIFTABLE: Final = frozenset(_with(Trait.LIFTABLE))
INSPECTING: Final = frozenset(_with(Trait.INSPECTING))
DISCARDING: Final = _with(Trait.DISCARDING)
VERBATIM: Final = _with(Trait.VERBATIM)
SILENT: Final = _with(Trait.SILENT)

ASSIGNED_FIELD: Final[Mapping[str, str]] = {
    "assignment_expression": "left",
    "augmented_assignment_expression": "left",
    "for_in_statement": "left",
    "update_expression": "argument",
}
"""By kind that assigns: the field of its target."""
