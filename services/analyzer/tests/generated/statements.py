"""Statements of generated programs."""

from dataclasses import replace

from services.analyzer.tests.generated.choices import Scope
from services.analyzer.tests.generated.declarations import Declarations
from services.analyzer.tests.generated.expressions import BOX
from services.analyzer.tests.generated.loops import Loops


class Statements(Declarations, Loops):
    """Writes blocks and their statements."""

    def body(self, scope: Scope) -> str:
        """Write the block of a function; most return a value."""
        return self.block(scope, ending=self.below(4) > 0, least=1)

    def block(
        self, scope: Scope, *, ending: bool = False, opening: str = "", least: int = 0
    ) -> str:
        """Write `{ … }`; with an ending, it returns a value."""
        return f"{{~{opening}{self.lines(scope, ending=ending, least=least)}~}}"

    def lines(self, scope: Scope, *, ending: bool, least: int = 0) -> str:
        """Write the content of a block: statements, and declarations that later ones can use."""
        written: list[str] = []
        last: list[str] = []
        taken: set[str] = set()
        for _ in range(least + self.below(4)):
            known = len(scope.functions)
            if self.one_in(3):
                text, scope = self.declaration(scope, taken)
                hoisted = text.startswith("async function") and self.one_in(3)
                (last if hoisted else written).append(text)
                for function in scope.functions[known:]:
                    only = replace(scope, functions=(function,))
                    uses = range(self.below(3))
                    written += [f"{self.target(scope)}{self.used(only)}§" for _ in uses]
            else:
                written.append(self.statement(scope))
        if ending:
            written.append(f"return {self.value(scope)}§")
        return "~".join([*written, *last])

    def statement(self, scope: Scope) -> str:
        """Write one statement that declares nothing in the enclosing block."""
        if self.is_enough:
            return f"{BOX}.p~=~{self.leaf(scope)}§"
        return self.pick(
            scope,
            (10, self.expression),
            (8, self.branch),
            (8, self.loop),
            (7, self.attempt),
            (4, self.switch),
            (4, self.jump),
            (1, lambda s: self.block(s)),
            (1, self.labelled_block),
            (1, self.late),
        )

    def expression(self, scope: Scope) -> str:
        """Write an expression for its effect, or for assignment to a local."""
        return f"{self.target(scope)}{self.value(scope)}§"

    def target(self, scope: Scope) -> str:
        """Write the beginning of an expression statement."""
        return f"{self.among(scope.lets)}~=~" if scope.lets and self.below(3) else "void "

    def used(self, scope: Scope) -> str:
        """Write a use of the one function in scope."""
        return self.pick(
            scope, (4, self.invoked), (1, self.parallel), (1, self.method), (1, self.chained)
        )

    def late(self, scope: Scope) -> str:
        """Write promises that are awaited later, or never."""
        mapped = self.mapped(scope)
        if not scope.waits or self.one_in(3):
            return f"void {mapped}§"
        between = self.expression(scope)
        return f"{{~const @4@~=~{mapped}§~{between}~await~Promise.all(@4@)§~}}"

    def branch(self, scope: Scope) -> str:
        """Write if, else if, else; with and without braces."""
        text = f"if~({self.value(scope)})~{self.part(scope)}"
        kind = self.below(4)
        if kind == 1:
            text += f"~else~{self.part(scope)}"
        if kind == 2:
            text += f"~else if~({self.value(scope)})~{self.part(scope)}"
        if kind == 3:
            text += f"~else {self.branch(scope)}" if not self.is_enough else "~else~{}"
        return text

    def part(self, scope: Scope) -> str:
        """Write a block, or a single statement that needs none."""
        if self.one_in(3):
            return self.simple(scope)
        return self.block(scope)

    def simple(self, scope: Scope) -> str:
        """Write one statement that needs no braces."""
        return self.pick(
            scope,
            (8, self.expression),
            (3, self.jump),
            (1, self.loop),
            (1, self.attempt),
            (1, self.switch),
            (1, self.branch),
        )

    def jump(self, scope: Scope) -> str:
        """Write return, throw, break or continue."""
        kind = self.below(6)
        if kind > 2 and scope.exits:
            return f"{self.among(scope.exits)}§"
        if kind == 1:
            return f"throw {self.value(scope)}§"
        if kind == 2:
            return f"return {self.value(scope)}§"
        return "throw new Error('thrown')§" if kind == 0 else f"{self.expression(scope)}"

    def attempt(self, scope: Scope) -> str:
        """Write try with catch, finally or both."""
        body = self.block(replace(scope, risky=True), least=1)
        kind = self.below(5)
        text = f"try~{body}"
        if kind == 1:
            text += f"~catch~{self.block(scope)}"
        elif kind == 2:
            text += f"~catch~({{~message:~@10@~}})~{self.block(scope.with_names('@10@'))}"
        elif kind != 4:
            text += f"~catch~(@10@)~{self.block(scope.with_names('@10@?.message'))}"
        return f"{text}~finally~{self.block(scope)}" if kind > 2 else text

    def switch(self, scope: Scope) -> str:
        """Write switch, with fall-through, and a default anywhere or none."""
        inner = replace(scope, exits=tuple(dict.fromkeys((*scope.exits, "break"))))
        tests = ["'s'", "1", "null", "args.a", "0"]
        cases: list[str] = []
        for _ in range(self.below(4)):
            test = tests.pop(self.below(len(tests)))
            if self.one_in(8):
                # It waits for nothing and enters nothing: of two in the same switch at the same
                # time, the first to choose is told as the choice of both.
                test = self.value(replace(scope, waits=False, functions=()))
            cases.append(f"case {test}:~{self.case(inner)}")
        if self.one_in(2):
            cases.insert(self.below(len(cases) + 1), f"default:~{self.case(inner)}")
        subject = self.among(("'s'", "1", "null")) if self.one_in(3) else self.value(scope)
        return f"switch~({subject})~{{~{'~'.join(cases)}~}}"

    def case(self, scope: Scope) -> str:
        """Write the body of a case; half of them fall through."""
        lines = "~".join(self.statement(scope) for _ in range(self.below(3)))
        return f"{lines}~break§" if self.one_in(2) else lines

    def labelled_block(self, scope: Scope) -> str:
        """Write a block that can be left."""
        label = f"l{scope.labels}"
        inner = replace(scope, labels=scope.labels + 1, exits=(*scope.exits, f"break {label}"))
        # The grammar reads a block of one labelled block, if that is empty, as an object.
        return f"{label}:~{{~;~{self.block(inner)}~}}"
