"""Access to prototypes, and to the constructor that compiles text; and harmless uses of both."""

import pytest

from services.analyzer.tests.support.programs import analysed, complaints

PROTO = {
    "a member": ("return [].__proto__;", "1:11 __proto__ is not allowed"),
    "in brackets": ("return []['__proto__'];", "1:11 __proto__ is not allowed"),
    "in a template": ("return [][`__proto__`];", "1:11 __proto__ is not allowed"),
    "escaped": ("return [].\\u005f_proto__;", "1:11 __proto__ is not allowed"),
    "composed": ("return []['__pro' + 'to__'];", "1:11 __proto__ is not allowed"),
    "substituted": ("const p = 'proto'; [][`__${p}__`];", "1:23 __proto__ is not allowed"),
    "assigned": ("args.a.__proto__.polluted = 1;", "1:8 __proto__ is not allowed"),
    "in a literal": ("return { __proto__: null };", "1:10 __proto__ is not allowed"),
    "in a quoted key": ("return { '__proto__': 1 };", "1:10 __proto__ is not allowed"),
    "in an escaped key": ("return { '__pro\\u0074o__': 1 };", "1:10 __proto__ is not allowed"),
    "in a computed key": ("return { ['__proto__']: 1 };", "1:10 __proto__ is not allowed"),
    "in a composed key": ("return { ['__pro' + 'to__']: 1 };", "1:10 __proto__ is not allowed"),
    "as shorthand": ("const __proto__ = 1; return { __proto__ };", "1:31 __proto__ is not allowed"),
    "as a method": ("return { __proto__() {} };", "1:10 __proto__ is not allowed"),
    "as a getter": ("return { get __proto__() { return 1; } };", "1:14 __proto__ is not"),
    "as a field": ("class A { __proto__ = 1; }", "1:11 __proto__ is not allowed"),
    "destructured": ("const { __proto__: p } = [];", "1:9 __proto__ is not allowed"),
    "destructured as it is": ("const { __proto__ } = [];", "1:9 __proto__ is not allowed"),
    "destructured by a text": ("const { '__proto__': p } = [];", "1:9 __proto__ is not allowed"),
    "destructured by a computed key": (
        "const k = '__proto__'; const { [k]: p } = [];",
        "1:32 __proto__ is not allowed",
    ),
    "destructured to a parameter": ("((({ __proto__: p }) => p))([]);", "1:6 __proto__ is not"),
    "destructured in a loop": ("for (const { __proto__: p } of []);", "1:14 __proto__ is not"),
    "assigned from": ("let p; ({ __proto__: p } = []);", "1:11 __proto__ is not allowed"),
    "as a key of Reflect": ("Reflect.get([], '__proto__');", "1:17 __proto__ is not allowed"),
    "as a descriptor": (
        "Object.getOwnPropertyDescriptor(Object.prototype, '__proto__');",
        "1:51 __proto__ is not allowed",
    ),
    "defined": ("Object.defineProperty({}, '__proto__', {});", "1:27 __proto__ is not allowed"),
    "__defineGetter__": ("[].__defineGetter__('a', () => 1);", "1:4 __defineGetter__ is not"),
    "__lookupSetter__": ("return [].__lookupSetter__;", "1:11 __lookupSetter__ is not allowed"),
}
SET_PROTOTYPE = {
    "of Object": ("Object.setPrototypeOf({}, null);", "1:8 setPrototypeOf is not allowed"),
    "of Reflect": ("Reflect.setPrototypeOf({}, null);", "1:9 setPrototypeOf is not allowed"),
    "in brackets": ("Object['set' + 'PrototypeOf']({}, null);", "1:8 setPrototypeOf is not"),
    "destructured": ("const { setPrototypeOf: s } = Object;", "1:25 setPrototypeOf is not allowed"),
    "by an alias": ("const O = Object; O.setPrototypeOf({}, null);", "1:21 setPrototypeOf is"),
}
CONSTRUCTOR = {
    "of a function": ("(() => {}).constructor('1')();", "1:12 constructor is not allowed"),
    "of an async function": ("(async () => {}).constructor;", "1:18 constructor is not allowed"),
    "of a prototype": (
        "Object.getPrototypeOf(async () => {}).constructor('1');",
        "1:39 constructor is not allowed",
    ),
    "a composed key": ("[]['constr' + 'uctor'];", "1:4 constructor is not allowed"),
    "a constant key": ("const k = 'constructor'; [][k];", "1:29 constructor is not allowed"),
    "a substituted key": ("[][`constr${'uctor'}`];", "1:4 constructor is not allowed"),
    "destructured": ("const { constructor: C } = [];", "1:22 constructor is not allowed"),
    "destructured by a computed key": (
        "const k = 'constructor'; const { [k]: C } = [];",
        "1:34 constructor is not allowed",
    ),
    "destructured to a member": (
        "const o = {}; ({ constructor: o.a } = []);",
        "1:31 constructor is not allowed",
    ),
    "as a whole": ("const c = [].constructor;", "1:14 constructor is not allowed"),
    "called in parentheses": ("([].constructor)('1');", "1:5 constructor is not allowed"),
    "optional": ("[]?.constructor;", "1:5 constructor is not allowed"),
    "as a key of Reflect": ("Reflect.get([], 'constructor');", "1:17 constructor is not allowed"),
    "as a key of an alias": (
        "const { get: g } = Reflect; g([], 'constr' + 'uctor');",
        "1:35 constructor is not allowed",
    ),
    "of the constructor of data": (
        "return args.a.constructor.constructor('1');",
        "1:27 constructor is not allowed",
    ),
    "of the constructor of a result": (
        "const c = (await mcp.fs.read({ path: 'a' })).constructor; c.constructor('1');",
        "1:61 constructor is not allowed",
    ),
    "of what a function returns": ("(() => 1)().constructor;", "1:13 constructor is not allowed"),
}
CHANGED = {
    "assigned": ("Array.prototype.x = 1;", "1:7 prototype cannot be changed"),
    "deep": ("Array.prototype['x'].y = 1;", "1:7 prototype cannot be changed"),
    "composed": ("Array['proto' + 'type'].x = 1;", "1:7 prototype cannot be changed"),
    "counted": ("Array.prototype.x++;", "1:7 prototype cannot be changed"),
    "by a pattern": ("[Array.prototype.x] = [1];", "1:8 prototype cannot be changed"),
    "by a loop": ("for (Array.prototype.x of [1]);", "1:12 prototype cannot be changed"),
    "deleted": ("delete Array.prototype.map;", "1:14 prototype cannot be changed"),
    "under a name": ("const p = Array.prototype; p.x = 1;", "1:30 prototype cannot be changed"),
    "destructured": (
        "const { prototype: p } = Array; p.x = 1;",
        "1:35 prototype cannot be changed",
    ),
    "of a name for a built-in": ("const A = Array; A.prototype.x = 1;", "1:20 prototype cannot be"),
    "of whatever is given": ("((C) => { C.prototype.x = 1; })(1);", "1:13 prototype cannot be"),
    "found": ("Object.getPrototypeOf([]).x = 1;", "1:27 prototype cannot be changed"),
    "found under a name": (
        "const p = Reflect.getPrototypeOf([]); p.x = 1;",
        "1:41 prototype cannot be changed",
    ),
    "defined": (
        "Object.defineProperty(Array.prototype, 'x', { value: 1 });",
        "1:23 prototype cannot be changed",
    ),
    "defined by an alias": (
        "const { defineProperties: d } = Object; d(Array.prototype, {});",
        "1:43 prototype cannot be changed",
    ),
    "merged into": ("Object.assign(Object.prototype, {});", "1:15 prototype cannot be changed"),
    "set": ("Reflect.set(Array.prototype, 'x', 1);", "1:13 prototype cannot be changed"),
    "removed": ("Reflect.deleteProperty(Map.prototype, 'get');", "1:24 prototype cannot be"),
    "handed on": (
        "const f = (p) => p; f(Array.prototype);",
        "1:29 prototype cannot be passed on",
    ),
    "handed to a class": (
        "class A {} new A(Array.prototype);",
        "1:24 prototype cannot be passed on",
    ),
}
TRICKS = {
    f"{group}: {name}": case
    for group, cases in {
        "__proto__": PROTO,
        "setPrototypeOf": SET_PROTOTYPE,
        "constructor": CONSTRUCTOR,
        "prototype": CHANGED,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(("code", "complaint"), TRICKS.values(), ids=TRICKS)
def test_a_trick_is_refused_with_its_reason_and_place(code: str, complaint: str) -> None:
    told = complaints(code)
    assert told[0].startswith(complaint), told


HONEST = {
    "the name of a class": "return [args.a.constructor.name, args.a['constructor']['name']];",
    "a class compared": "const m = new Map(); return m.constructor === Map || !m.constructor;",
    "a class asked for": "const m = []; switch ((m.constructor)) { case Array: return 1; }",
    "a key of a result": "const r = await mcp.fs.read({ path: 'a' }); return r.constructor;",
    "a key of the caller's": "return args.constructor;",
    "a key of a result, opened": "const { constructor: c } = await mcp.fs.list({}); return c;",
    "a key of any tool's result": "const r = await mcp[args.s].read({}); return r.constructor;",
    "a key in an object": "return { constructor: 1, prototype: 2, ['constructor']: 3 };",
    "methods of prototypes": "return Array.prototype.slice.call([1]);",
    "hasOwnProperty": "return Object.prototype.hasOwnProperty.call(args, 'a');",
    "a method taken out": "const { hasOwnProperty } = Object.prototype; return hasOwnProperty;",
    "a prototype compared": "return Object.getPrototypeOf(args.a) === Object.prototype;",
    "a prototype read by a built-in": "return Object.keys(Array.prototype);",
    "an object without a prototype": "return Object.create(null);",
    "an object from a prototype": "return Object.create(Error.prototype);",
    "a class's own prototype": "class A {} A.prototype.x = 1; new A();",
    "a function's own prototype": "function A() {} A.prototype.x = () => 1; new A();",
    "an expression's own prototype": "const A = class {}; A.prototype.x = 1; new A();",
    "data called prototype": "const o = { prototype: 1 }; o.prototype = 2; return o.prototype;",
    "data of the caller's": "args.prototype.x = 1;",
    "a descriptor": "return Object.getOwnPropertyDescriptor(args, 'a');",
    "a key of the run's": "return Object.getOwnPropertyDescriptor(args, args.key);",
    "other functions": "const o = { get: (a, b) => b }; return o.get(1, 'constructor');",
    "own objects": "return Object.assign({}, Object.defineProperty({}, 'a', { value: 1 }));",
    "tags of built-ins": "return Reflect.get`a`;",
    "members removed": "const o = { a: 1 }; delete o.a; delete o['b']; return o;",
    "a name met on the way to itself": "let a = Array; a = a.b; let b = b; a.x = 1; b.x = 1;",
    "a name deep down": "const o = {}; const p = o.a.b.c.d.e.f.g.h.i.j.k; p.x = 1;",
    "a part that only the run can tell": "const { [args.k]: p } = Array; p.x = 1; [][p].y = 1;",
    "a part of nothing": "for (const p of [Array]) { const [q] = p; q.x = 1; }",
    "a loop's name": "for (const { a } of args.list) { a.x = 1; }",
    "a long part": "const { a: { b: { c: { d: { e: { f: { g: { h: { i }}}}}}}}} = Math; i.x = 1;",
    "calls of calls": "const f = () => () => ({}); f()().x = 1;",
}


@pytest.mark.parametrize("code", HONEST.values(), ids=HONEST)
def test_an_honest_look_is_allowed(code: str) -> None:
    assert analysed(code)
