"""Each construct of the language in its instrumented form, with «insertions» marked."""

from dataclasses import dataclass, field

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject


@dataclass(frozen=True)
class Case:
    """A program with marked insertions; its reports, as node or node:outcome, and its path. Calls
    side by side are answered in any order, and so are their reports."""

    code: str
    reported: str
    path: str
    args: JsonObject = field(default_factory=dict[str, JsonValue])
    in_order: bool = True


CASES = {
    "if": Case(
        """if («__pml.decide("d1", »args.yes«)») await «__pml.at("n1", »mcp.api.a«)»();
        else await «__pml.at("n2", »mcp.api.b«)»();""",
        "d1:true n1",
        "d1 n1",
        {"yes": 1},
    ),
    "a condition that calls": Case(
        """if («__pml.decide("d1", »(await «__pml.at("n1", »mcp.api.a«)»({ x: 0 })).x«)») return 1;
        return «__pml.decide("d2", »args.no«)» ? 2 : await «__pml.at("n2", »mcp.api.b«)»();""",
        "n1 d1:false d2:false n2",
        "n1 d1 d2 n2",
        {"no": ""},
    ),
    "and, or": Case(
        """const a = «__pml.decide("d1", »args.zero«)» && «__pml.at("n1", »mcp.api.a«)»();
        const b = «__pml.decide("d2", »args.zero«)» || (await «__pml.at("n2", »mcp.api.b«)»());
        return [a, b];""",
        "d1:false d2:false n2",
        "d1 d2 n2",
        {"zero": 0},
    ),
    "what is absent": Case(
        """const a = «__pml.absent("d1", »args.zero«)» ?? (await «__pml.at("n1", »mcp.api.a«)»());
        const b = «__pml.absent("d2", »args.none«)» ?? (await «__pml.at("n2", »mcp.api.b«)»());
        return [a, b];""",
        "d1:false d2:true n2",
        "d1 d2 n2",
        {"zero": 0, "none": None},
    ),
    "logical assignments": Case(
        """let a = 1, b: unknown, c = { d: null as unknown };
        «__pml.last(__pml.decide("d1", a), »a &&= await «__pml.at("n1", »mcp.api.a«)»({})«)»;
        «__pml.last(__pml.decide("d2", b), »b ||= «__pml.at("n2", »mcp.api.b«)»({}) && 3«)»;
        const d = «__pml.last(__pml.absent("d3", c.d), »c.d ??=
          await «__pml.at("n3", »mcp.api.a«)»()«)»;
        return [a, b, c, d];""",
        "d1:true n1 d2:false n2 d3:true n3",
        "d1 n1 d2 n2 d3 n3",
    ),
    "a switch that falls through": Case(
        """const seen = [];
        for (const kind of args.kinds) {« __pml.round("l1");»
          switch («__pml.subject("d1", »kind«)») {
            case "a": «__pml.chosen("d1", "case:a"); »
              seen.push(await «__pml.at("n1", »mcp.api.a«)»());
            case "b": «__pml.chosen("d1", "case:b"); »
              seen.push(await «__pml.at("n2", »mcp.api.b«)»()); break;
            case args.other: «__pml.chosen("d1", "case:args.other"); »seen.push(kind);
          « default: __pml.chosen("d1", "default");»}
        }
        return seen;""",
        "l1 d1:case:a n1 n2 l1 d1:case:b n2 l1 d1:case:args.other l1 d1:default",
        "l1 d1 n1 n2 l1 d1 n2 l1 d1",
        {"kinds": ["a", "b", "x", "z"], "other": "x"},
    ),
    "a try that succeeds": Case(
        """try { await «__pml.at("n1", »mcp.api.a«)»();« __pml.took("d1", "ok");» }
        catch {« __pml.took("d1", "error");» await «__pml.at("n2", »mcp.api.b«)»(); }
        finally { await «__pml.at("n3", »mcp.api.b«)»(); }""",
        "n1 d1:ok n3",
        "n1 d1 n3",
    ),
    "a try that fails": Case(
        """try { await «__pml.at("n1", »mcp.api.c«)»();« __pml.took("d1", "ok");» }
        catch (error) {« __pml.took("d1", "error");» return [error.message,
          await «__pml.at("n2", »mcp.api.b«)»()]; }""",
        "n1 d1:error n2",
        "n1 d1 n2",
    ),
    "a body that is no block": Case(
        """let i = 0;
        while (i < 3) «{ __pml.round("l1"); »await «__pml.at("n1", »mcp.api.a«)»({ i: i++ });« }»
        do {« __pml.round("l2");» await «__pml.at("n2", »mcp.api.b«)»({ i: i-- }); } while (i > 1);
        return i;""",
        "l1 n1 l1 n1 l1 n1 l2 n2 l2 n2",
        "l1 n1 l2 n2",
    ),
    "loops in each other, left early": Case(
        """outer: for (const i of [0, 1, 2]) {« __pml.round("l1");»
          for (const j in [0, 1, 2]) {« __pml.round("l2");»
            if («__pml.decide("d1", »+j > i«)») continue outer;
            await «__pml.at("n1", »mcp.api.a«)»({ i, j });
            if («__pml.decide("d2", »i === 2«)») break outer;
          }
        }
        await «__pml.at("n2", »mcp.api.b«)»();""",
        "l1 l2 d1:false n1 d2:false l2 d1:true "
        "l1 l2 d1:false n1 d2:false l2 d1:false n1 d2:false l2 d1:true "
        "l1 l2 d1:false n1 d2:true n2",
        "l1 l2 d1 n1 d2 l2 d1 l1 l2 d1 n1 d2 n2",
    ),
    "a loop over what is awaited": Case(
        """async function* pages() { for (const n of [1, 2]) yield n; }
        for await (const n of pages()) {« __pml.round("l1");»
          await «__pml.at("n1", »mcp.api.a«)»({ n });
        }""",
        "l1 n1 l1 n1",
        "l1 n1",
    ),
    "callbacks": Case(
        """const left: unknown[] = [];
        const big = args.items.map((x: number) => «(__pml.round("l1"), »
          «__pml.decide("d1", »x > 1«)» ? x : «__pml.at("n1", »mcp.api.a«)»({ x })«)»);
        args.items.forEach((x: number) => {« __pml.round("l2");»
          left.push(«__pml.at("n2", »mcp.api.b«)»({ x }));
        });
        await Promise.all(left);
        return big.length;""",
        "l1 d1:false n1 l1 d1:true l1 d1:true l2 n2 l2 n2 l2 n2",
        "l1 d1 n1 l1 d1 l2 n2",
        {"items": [1, 2, 3]},
    ),
    "calls side by side": Case(
        """return await Promise.all([
          «__pml.at("n1", »mcp.api.a«)»({ x: 1 }),
          «__pml.decide("d1", »args.yes«)» && «__pml.at("n2", »mcp.api.b«)»({ x: 2 }),
        ]);""",
        "n1 d1:true n2",
        "n1 d1 n2",
        {"yes": True},
    ),
    "a map side by side": Case(
        """return await Promise.all(args.items.map(async (x: number) => {
          const a = await «__pml.at("n1", »mcp.api.a«)»({ x });
          return «__pml.decide("d1", »x > 1«)» ? await «__pml.at("n2", »mcp.api.b«)»({ a }) : null;
        }));""",
        "n1 n1 n1 d1:false d1:true n2 d1:true n2",
        "n1 d1 n2",
        {"items": [1, 2, 3]},
        in_order=False,
    ),
    "a function entered in two ways": Case(
        """«const __pml_nodes = [["n1","d1","n2"],["n3","d2","n4"],["n5","d3","n6"]]; »
        async function read(path: string) {« const __pml_3 = __pml.entered("read", 2);»
          const file = await «__pml.at(__pml_nodes[__pml_3][0], »mcp.api.a«)»({ path });
          if («__pml.decide(__pml_nodes[__pml_3][1], »file.path === "y"«)»)
            await «__pml.at(__pml_nodes[__pml_3][2], »mcp.api.b«)»();
          return file;
        }
        const one = await «__pml.via(0, "read", »read«)»("x");
        const both = [one, await «__pml.via(1, "read", »read«)»("y")];
        const passed = read; // by no known way
        return [both, await passed("z")];""",
        "n1 d1:false n3 d2:true n4 n5 d3:false",
        "n1 d1 n3 d2 n4 n5 d3",
    ),
    "functions that enter functions": Case(
        """«const __pml_nodes = [["n1"],["n2"],["n3"],[0,"n4"],[1,"n5"],[2,"n6"]]; »
        const get = (x: string) => «{ const __pml_2 = __pml.entered("get", 2); return (»
          «__pml.at(__pml_nodes[__pml_2][0], »mcp.api.a«)»({ x })«); }»;
        const both = async function (x: string) {« const __pml_3 = __pml.entered("both", 5);»
          await «__pml.via(__pml_nodes[__pml_3][0], "get", »get«)»(x);
          await «__pml.at(__pml_nodes[__pml_3][1], »mcp.api.b«)»();
        };
        await «__pml.via(3, "both", »both«)»("x");
        await «__pml.via(4, "both", »both«)»("y");
        return await Promise.all(["u", "v"].map(«__pml.via(2, "get", »get«)»));""",
        "n1 n4 n2 n5 n3 n3",
        "n1 n4 n2 n5 n3",
    ),
    "recursion": Case(
        """async function walk(depth: number): Promise<number> {« __pml.round("l1");»
          if («__pml.decide("d1", »depth === 0«)») return 0;
          await «__pml.at("n1", »mcp.api.a«)»({ depth });
          return 1 + await walk(depth - 1);
        }
        const deep = await walk(3);
        await «__pml.at("n2", »mcp.api.b«)»();
        return deep;""",
        "l1 d1:false n1 l1 d1:false n1 l1 d1:false n1 l1 d1:true n2",
        "l1 d1 n1 l1 d1 n2",
    ),
    "an optional call": Case(
        """const none = undefined as unknown as typeof mcp;
        return [
          await «__pml.at("n1", »none?.api.a«)»«?.»(),
          await «__pml.at("n2", »mcp?.api.b«)»«?.»(),
        ];""",
        "n2",
        "n2",
    ),
}
