"""Names suggested for capabilities that have none, with reasons.

A name comes from the tools (namespace) and from the intent and the tools (action). Its confidence
adds up what supports it, at most 1.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal
from uuid import UUID

from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.capability import Usage
from pml_common.contracts.display_names import (
    MAX_NAMESPACE,
    RESERVED_NAMESPACES,
    BadName,
    parse_display_name,
)
from pml_registry.domain.naming_rules import FALLBACK_NAMESPACE, NAMESPACE_RULES, STOP_WORDS

SIMILAR_FROM: Final = 0.5
"""Share of common tools from which two capabilities belong to one cluster."""

_BY_RULE, _BY_SERVER = 0.3, 0.15
_BY_INTENT, _BY_ONE_WORD, _BY_TOOLS = 0.4, 0.2, 0.2
_AGREEMENT, _MOST_BY_RUNS, _ENOUGH_RUNS = 0.2, 0.1, 5
_NOT_FIRST_CHOICE = 0.2
_WORDS = 3
_MOST_NUMBERS = 9
_MAX_SHOWN = 4

_WORD = re.compile(r"[a-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class Unnamed:
    """A listed capability without a given name; `owner` is whose it stays once it has one."""

    capability_id: UUID
    name: str
    owner: str
    description: str
    tools_used: Sequence[str]
    code: str
    usage: Usage


@dataclass(frozen=True)
class Suggestion:
    """A name for a capability. `confidence` is in [0, 1]; `model`: a language model chose it."""

    capability_id: UUID
    name: str
    confidence: float
    reasons: Sequence[str]
    source: Literal["rules", "model"] = "rules"


@dataclass(frozen=True)
class Draft:
    """Names for a capability, the best first, and what supports them."""

    capability_id: UUID
    names: Sequence[str]
    confidence: float
    reasons: Sequence[str]
    source: Literal["rules", "model"] = "rules"


def clusters(capabilities: Sequence[Unnamed]) -> Sequence[Sequence[Unnamed]]:
    """Group capabilities that use the same tools for the most part, in the order given."""
    groups: list[list[Unnamed]] = []
    for capability in capabilities:
        near = [group for group in groups if any(_similar(capability, one) for one in group)]
        merged = [one for group in near for one in group]
        groups = [group for group in groups if group not in near]
        groups.append([*merged, capability])
    return groups


def namespace_of(tools: Sequence[str]) -> tuple[str, float, str]:
    """Return the namespace for these tools, its confidence and the reason: the rule that fits most
    of them, else the server that has most of them."""
    fitting = Counter(namespace for tool in tools if (namespace := _by_rule(tool)) is not None)
    if fitting:
        namespace, count = fitting.most_common(1)[0]
        share = count / len(tools)
        return namespace, _BY_RULE * share, f"{namespace}: uses {_listed(tools)}"
    servers = Counter(_as_namespace(tool.partition(":")[0]) for tool in tools)
    server = servers.most_common(1)[0][0] if servers else None
    if server is None:
        return FALLBACK_NAMESPACE, 0.0, f"{FALLBACK_NAMESPACE}: no rule fits its tools"
    return server, _BY_SERVER, f"{server}: the server of {_listed(tools)}"


def drafts(capabilities: Sequence[Unnamed]) -> Sequence[Draft]:
    """Draft names by rules, in the order given; a cluster has one namespace."""
    found: dict[UUID, Draft] = {}
    for cluster in clusters(capabilities):
        namespace = namespace_of([tool for one in cluster for tool in one.tools_used])
        for capability in cluster:
            found[capability.capability_id] = _draft(capability, namespace, len(cluster) - 1)
    return [found[capability.capability_id] for capability in capabilities]


def with_proposals(drafted: Sequence[Draft], proposed: Mapping[UUID, str]) -> Sequence[Draft]:
    """Put a language model's names before those by rules, as far as they are valid. A name in the
    namespace by rules has their confidence or more."""
    return [_with_proposal(draft, proposed.get(draft.capability_id)) for draft in drafted]


def choose(drafted: Sequence[Draft], taken: Collection[str]) -> Sequence[Suggestion]:
    """Choose the best free name for each: none that is called the same as one of `taken`, which are
    callable names, or as another suggestion."""
    used = set(taken)
    found: list[Suggestion] = []
    for draft in drafted:
        free = (name for name in draft.names if callable_name(name) not in used)
        name = next(free, None)
        if name is None:
            continue
        used.add(callable_name(name))
        found.append(_suggestion(draft, name))
    return found


def _suggestion(draft: Draft, name: str) -> Suggestion:
    if name == draft.names[0]:
        confidence, reasons = draft.confidence, draft.reasons
    else:
        confidence = draft.confidence - _NOT_FIRST_CHOICE
        reasons = [*draft.reasons, f"{draft.names[0]} is taken"]
    is_own = draft.source == "rules" or name == draft.names[0]
    rounded = round(min(1.0, max(0.0, confidence)), 2)
    source = draft.source if is_own else "rules"
    return Suggestion(draft.capability_id, name, rounded, tuple(reasons), source)


def _draft(capability: Unnamed, namespace: tuple[str, float, str], others: int) -> Draft:
    chosen, confidence, reason = namespace
    reasons = [reason]
    if others:
        reasons.append(f"{others} more use the same tools")
    said, tool_words = _said(capability.description), _tool_words(capability.tools_used)
    words = said or tool_words or ["run"]
    if said:
        confidence += _BY_INTENT if len(said) > 1 else _BY_ONE_WORD
        reasons.append(f"intent: {capability.description.strip()[:80]}")
    elif tool_words:
        confidence += _BY_TOOLS
        reasons.append("named after its tools: its runs had no intent")
    common = [word for word in words if word in tool_words]
    if said and common:
        confidence += _AGREEMENT
        reasons.append(f"its tools say {common[0]}, too")
    usage = capability.usage
    confidence += _MOST_BY_RUNS * min(1.0, usage.success_count / _ENOUGH_RUNS) * usage.success_rate
    names = dict.fromkeys(_names(chosen, words, tool_words, capability.capability_id))
    return Draft(capability.capability_id, list(names), confidence, reasons)


def _with_proposal(draft: Draft, proposed: str | None) -> Draft:
    try:
        name = parse_display_name(proposed or "")
    except BadName:
        return draft
    namespace = draft.names[0].partition(":")[0]
    agrees = name.namespace == namespace
    confidence = max(draft.confidence, _BY_RULE + _BY_INTENT) if agrees else _BY_INTENT
    reasons = [*draft.reasons, "a language model chose the name"]
    numbered = (f"{name}_{number}" for number in range(2, _MOST_NUMBERS + 1))
    names = dict.fromkeys([str(name), *filter(_is_valid, numbered), *draft.names])
    return Draft(draft.capability_id, list(names), confidence, reasons, "model")


def _names(
    namespace: str, words: Sequence[str], tool_words: Sequence[str], capability_id: UUID
) -> Iterator[str]:
    """Names, the best first; the last is nobody else's."""
    first = words[:_WORDS]
    others = [word for word in tool_words if word not in first]
    endings = ["", *words[_WORDS : _WORDS + 1], *others[:1], *map(str, range(2, _MOST_NUMBERS + 1))]
    for ending in [*endings, capability_id.hex[-8:]]:
        parts = [*first, ending] if ending else first
        name = f"{namespace}:{'_'.join(parts)}"
        while not _is_valid(name) and len(first) > 1:
            first = first[:-1]
            name = f"{namespace}:{'_'.join([*first, ending] if ending else first)}"
        if _is_valid(name):
            yield name


def _is_valid(name: str) -> bool:
    try:
        parse_display_name(name)
    except BadName:
        return False
    return True


def _said(intent: str) -> list[str]:
    """Return the words of an intent's first line that say what it is about; letters of other
    scripts are left out."""
    plain = unicodedata.normalize("NFKD", intent.strip().partition("\n")[0]).casefold()
    letters = "".join(char for char in plain if not unicodedata.combining(char))
    words = [word for word in _WORD.findall(letters) if word not in STOP_WORDS]
    while words and not words[0][0].isalpha():
        words = words[1:]
    return list(dict.fromkeys(word[:20] for word in words))


def _tool_words(tools: Sequence[str]) -> list[str]:
    """Return the words of the tools' names, without their servers."""
    names = (_HUMP.sub("_", tool.partition(":")[2]).lower() for tool in tools)
    words = (word[:20] for name in names for word in _WORD.findall(name))
    return list(dict.fromkeys(word for word in words if word[0].isalpha()))


def _by_rule(tool: str) -> str | None:
    lowered = tool.lower()
    return next(
        (
            namespace
            for namespace, patterns in NAMESPACE_RULES
            if any(fnmatchcase(lowered, pattern) for pattern in patterns)
        ),
        None,
    )


def _as_namespace(server: str) -> str | None:
    name = re.sub(r"[^a-z0-9]+", "-", server.lower()).strip("-")[:MAX_NAMESPACE].strip("-")
    return name if name and name[0].isalpha() and name not in RESERVED_NAMESPACES else None


def _similar(one: Unnamed, other: Unnamed) -> bool:
    tools, others = set(one.tools_used), set(other.tools_used)
    return tools == others or len(tools & others) / len(tools | others) >= SIMILAR_FROM


def _listed(tools: Sequence[str]) -> str:
    different = list(dict.fromkeys(tools))
    more = f" and {len(different) - _MAX_SHOWN} more" if len(different) > _MAX_SHOWN else ""
    return f"{', '.join(different[:_MAX_SHOWN])}{more}"
