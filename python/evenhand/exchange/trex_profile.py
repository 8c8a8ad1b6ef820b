# SPDX-License-Identifier: Apache-2.0
"""Exchange: the streams of a stateless TRex profile, by its syntax tree. Nothing of it is run: a small
interpreter knows assignments, branches, loops through lists, calls of the profile's own functions, and what
builds packets; it refuses anything else with its line."""

from __future__ import annotations

import ast
import ipaddress
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.exchange.trex_values import (
    HEADER_OCTETS,
    IGNORED,
    MOST_PADDING,
    FieldEngine,
    FlowVar,
    Layer,
    Mode,
    Packet,
    ProfileError,
    TrexStream,
    Write,
)

MODULES = ("trex", "scapy", "argparse", "trex_stl_lib", "__future__")
"""Those that a profile may import."""
MOST_STEPS = 20_000
_OCTETS_OF_A_STEP = 64
"""What a step may keep: so steps bound the memory, too."""
MOST_DEPTH = 20
"""Functions that call each other."""
TOO_DEEP = "it is nested too deeply"
_ENGINE_METHODS = ("var", "write", "tuple_var", "fix_chksum", "fix_chksum_hw")
_OF_WRITE = ("fv_name", "pkt_offset", "offset_fixup", "add_val", "is_big")
_OF_VARIABLE = ("name", "init_value", "min_value", "max_value", "size", "step", "op")
_OF_TUPLE = ("name", "ip_min", "ip_max", "port_min", "port_max", "limit_flows", "flags")
_OF_BUILDER = ("pkt", "pkt_buffer", "vm")
"""Arguments in their order."""
_SMALLEST, _LARGEST = 0, 255
"""TRex' defaults of a variable's ends."""
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "max": max,
    "min": min,
    "int": int,
    "float": float,
    "str": str,
    "abs": abs,
    "bool": bool,
}
_COMPARED: Mapping[type, Callable[[Any, Any], bool]] = {
    ast.Eq: lambda a, b: bool(a == b),
    ast.NotEq: lambda a, b: bool(a != b),
    ast.Lt: lambda a, b: bool(a < b),
    ast.Gt: lambda a, b: bool(a > b),
    ast.LtE: lambda a, b: bool(a <= b),
    ast.GtE: lambda a, b: bool(a >= b),
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
}


@dataclass(slots=True)
class _Parser:
    """An ArgumentParser: tunables have their defaults."""

    defaults: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Object:
    """An instance of a class of the profile, or the tunables."""

    attributes: dict[str, Any]
    methods: Mapping[str, ast.FunctionDef] = field(default_factory=dict)


class _Returned(Exception):  # noqa: N818 (no error)
    def __init__(self, value: Any) -> None:
        self.value = value


class TrexProfile:
    """A profile that was parsed."""

    def __init__(self, text: str) -> None:
        """ProfileError: it is no Python, or imports what a profile needs not."""
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ProfileError(getattr(error, "lineno", None) or 1, f"this is no Python: {error}") from error
        self._functions: dict[str, ast.FunctionDef] = {}
        self._classes: dict[str, ast.ClassDef] = {}
        self._globals: dict[str, Any] = {}
        self.asks_direction = False
        """Whether its streams depend on the port."""
        self._steps = self._depth = 0
        for node in tree.body:
            try:
                self._take(node)
            except _Returned as error:
                raise ProfileError(node.lineno, "return outside of a function") from error
            except RecursionError as error:
                raise ProfileError(node.lineno, TOO_DEEP) from error

    def streams(self, direction: int) -> list[TrexStream]:
        """What a port of this direction sends: 0 of even ports, 1 of odd ones. ProfileError."""
        try:
            return self._streams(direction)
        except RecursionError as error:
            raise ProfileError(1, TOO_DEEP) from error

    def _streams(self, direction: int) -> list[TrexStream]:
        register = self._functions.get("register")
        if register is None:
            raise ProfileError(1, "there is no function register(), so this is no profile")
        profile = self._call(register, [], {}, register.lineno)
        given = {"direction": direction, "port_id": direction, "tunables": []}
        if isinstance(profile, _Object) and "get_streams" in profile.methods:
            found = self._call(profile.methods["get_streams"], [profile], given, register.lineno)
        else:
            raise ProfileError(register.lineno, "register() gives no object with get_streams()")
        streams = list(found) if isinstance(found, list | tuple) else [found]
        if not streams or not all(isinstance(each, TrexStream) for each in streams):
            raise ProfileError(register.lineno, "get_streams() gives no streams")
        return streams

    def _take(self, node: ast.stmt) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                names = (
                    [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
                )
                for name in names:
                    if name.partition(".")[0] not in MODULES:
                        raise ProfileError(node.lineno, f"it imports {name}, which no profile needs here")
            case ast.FunctionDef():
                self._functions[node.name] = node
            case ast.ClassDef():
                self._classes[node.name] = node
            case ast.If() if "__name__" in ast.dump(node.test):
                pass
            case _:
                self._statement(node, self._globals)

    def _call(
        self, function: ast.FunctionDef, positional: Sequence[Any], named: Mapping[str, Any], line: int
    ) -> Any:
        arguments = function.args
        names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        scope: dict[str, Any] = {}
        if arguments.defaults:
            for name, default in zip(names[-len(arguments.defaults) :], arguments.defaults, strict=True):
                scope[name] = self._value(default, self._globals)
        for each, default_of in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default_of is not None:
                scope[each.arg] = self._value(default_of, self._globals)
            names.append(each.arg)
        if len(positional) > len(names):
            raise ProfileError(line, f"{function.name}() is called with too many arguments")
        scope |= dict(zip(names, positional, strict=False))
        scope |= {name: value for name, value in named.items() if name in names}
        if arguments.kwarg is not None:
            scope[arguments.kwarg.arg] = {key: each for key, each in named.items() if key not in names}
        missing = [name for name in names if name not in scope]
        if missing:
            raise ProfileError(line, f"{function.name}() is called without {missing[0]}")
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise ProfileError(line, "its functions call each other without end")
        try:
            for statement in function.body:
                self._statement(statement, scope)
        except _Returned as returned:
            return returned.value
        finally:
            self._depth -= 1
        return None

    def _statement(self, node: ast.stmt, scope: dict[str, Any]) -> None:
        self._step(node.lineno)
        match node:
            case ast.Return():
                raise _Returned(None if node.value is None else self._value(node.value, scope))
            case ast.Assign(targets=[target]):
                self._assign(target, self._value(node.value, scope), scope)
            case ast.AnnAssign(value=ast.expr() as given):
                self._assign(node.target, self._value(given, scope), scope)
            case ast.AugAssign():
                together = ast.copy_location(ast.BinOp(_loaded(node.target), node.op, node.value), node)
                self._assign(node.target, self._value(together, scope), scope)
            case ast.If():
                for each in node.body if self._value(node.test, scope) else node.orelse:
                    self._statement(each, scope)
            case ast.For(orelse=[]):
                for value in self._listed(node.iter, scope):
                    self._assign(node.target, value, scope)
                    for each in node.body:
                        self._statement(each, scope)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr():
                self._value(node.value, scope)
            case _:
                raise ProfileError(node.lineno, f"{type(node).__name__.lower()}: only what is plain is read")

    def _assign(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        match target:
            case ast.Name():
                scope[target.id] = value
            case ast.Attribute(value=ast.Name(id=owner)) if isinstance(scope.get(owner), _Object):
                scope[owner].attributes[target.attr] = value
            case ast.Subscript() if isinstance(owned := self._value(target.value, scope), dict):
                try:
                    owned[self._value(target.slice, scope)] = value
                except TypeError as error:
                    raise ProfileError(target.lineno, f"{ast.unparse(target)[:60]}: {error}") from error
            case ast.Tuple() if isinstance(value, list) and len(value) == len(target.elts):
                for each, part in zip(target.elts, value, strict=True):
                    self._assign(each, part, scope)
            case _:
                raise ProfileError(target.lineno, "only names and attributes of self can be assigned")

    def _value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        self._step(node.lineno)
        try:
            return self._found(node, scope)
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
            raise ProfileError(node.lineno, f"{ast.unparse(node)[:60]}: {error}") from error

    def _found(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                self.asks_direction |= node.id in ("direction", "port_id")
                if node.id in scope:
                    return scope[node.id]
                if node.id in self._globals:
                    return self._globals[node.id]
                raise ProfileError(node.lineno, f"{node.id} is not known here")
            case ast.ListComp(generators=[ast.comprehension(ifs=[]) as each]):
                found, inner = [], dict(scope)
                for value in self._listed(each.iter, scope):
                    self._assign(each.target, value, inner)
                    found.append(self._value(node.elt, inner))
                return found
            case ast.List() | ast.Tuple():
                return [self._value(each, scope) for each in node.elts]
            case ast.Dict():
                keys = [None if key is None else self._value(key, scope) for key in node.keys]
                return dict(zip(keys, (self._value(each, scope) for each in node.values), strict=True))
            case ast.Subscript():
                return self._value(node.value, scope)[self._value(node.slice, scope)]
            case ast.UnaryOp(op=ast.USub()):
                return -self._value(node.operand, scope)
            case ast.UnaryOp(op=ast.Not()):
                return not self._value(node.operand, scope)
            case ast.BoolOp():
                operand: Any = None
                for part in node.values:
                    operand = self._value(part, scope)
                    if bool(operand) is not isinstance(node.op, ast.And):
                        break
                return operand
            case ast.IfExp():
                chosen = node.body if self._value(node.test, scope) else node.orelse
                return self._value(chosen, scope)
            case ast.Compare(ops=[op], comparators=[other]) if type(op) in _COMPARED:
                return _COMPARED[type(op)](self._value(node.left, scope), self._value(other, scope))
            case ast.BinOp():
                return self._operation(node, scope)
            case ast.Attribute():
                owner = self._value(node.value, scope)
                if isinstance(owner, _Object) and node.attr in owner.attributes:
                    return owner.attributes[node.attr]
                raise ProfileError(node.lineno, f"{ast.unparse(node)[:60]} is not known here")
            case ast.Call():
                return self._called(node, scope)
        raise ProfileError(node.lineno, f"{ast.unparse(node)[:60]}: only what is plain is read")

    def _listed(self, node: ast.expr, scope: dict[str, Any]) -> list[Any]:
        """What a loop goes through."""
        found = self._value(node, scope)
        if not isinstance(found, list):
            raise ProfileError(node.lineno, f"{ast.unparse(node)[:60]}: loops go through lists here")
        return list(found)

    def _operation(self, node: ast.BinOp, scope: dict[str, Any]) -> Any:
        left, right = self._value(node.left, scope), self._value(node.right, scope)
        if isinstance(node.op, ast.Div):
            if isinstance(left, Packet):
                return left.over(right, node.lineno)
            return left / right
        operator = _OPERATORS.get(type(node.op))
        if operator is None:
            raise ProfileError(node.lineno, f"{ast.unparse(node)[:60]}: only what is plain is read")
        for text, times in ((left, right), (right, left)):
            is_text = isinstance(text, str | bytes | list)
            if is_text and isinstance(times, int) and len(text) * times > MOST_PADDING:
                raise ProfileError(node.lineno, "this text is too long")
        found = operator(left, right)
        if isinstance(found, str | bytes | list) and len(found) > MOST_PADDING:
            raise ProfileError(node.lineno, "this text is too long")
        if isinstance(found, str | bytes | list):
            self._step(node.lineno, len(found) // _OCTETS_OF_A_STEP)
        if isinstance(found, int) and abs(found) >= 1 << 128:
            raise ProfileError(node.lineno, "this number is too large")
        return found

    def _called(self, node: ast.Call, scope: dict[str, Any]) -> Any:
        line = node.lineno
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "ArgumentParser":
                return _Parser()
            owner = self._value(node.func.value, scope)
            name = node.func.attr
            if isinstance(owner, _Object) and name in owner.methods:
                return self._call(
                    owner.methods[name],
                    [owner, *self._positional(node, scope)],
                    self._named(node, scope),
                    line,
                )
            if isinstance(owner, _Parser):
                return self._parser_call(owner, name, node, scope)
            if isinstance(owner, FieldEngine) and name in _ENGINE_METHODS:
                found = _engine_part(name, self._positional(node, scope), self._named(node, scope), line)
                return owner.add(found, line)
            if isinstance(owner, list) and name == "append":
                return owner.append(*self._positional(node, scope))
            if isinstance(owner, list) and name == "get_streams":  # of an STLProfile
                return owner
            raise ProfileError(line, f"{ast.unparse(node.func)[:60]}(): no profile needs this here")
        if name == "ArgumentParser":
            return _Parser()
        positional, named = self._positional(node, scope), self._named(node, scope)
        if name == "range":
            numbers = range(*positional)
            self._step(line, len(numbers))
            return list(numbers)
        if name in self._functions:
            return self._call(self._functions[name], positional, named, line)
        if name in self._classes:
            return self._made(self._classes[name], positional, named, line)
        return _built(name, positional, named, line)

    def _made(
        self, kind: ast.ClassDef, positional: Sequence[Any], named: Mapping[str, Any], line: int
    ) -> _Object:
        made = _Object({}, {each.name: each for each in kind.body if isinstance(each, ast.FunctionDef)})
        for each in kind.body:
            if isinstance(each, ast.Assign):
                self._statement(each, made.attributes)
        if "__init__" in made.methods:
            self._call(made.methods["__init__"], [made, *positional], named, line)
        return made

    def _parser_call(self, parser: _Parser, name: str, node: ast.Call, scope: dict[str, Any]) -> Any:
        if name == "parse_args":
            return _Object(dict(parser.defaults))
        if name != "add_argument":
            raise ProfileError(node.lineno, f"{name}(): no profile needs this here")
        words = [str(self._value(each, scope)) for each in node.args]
        given = {each.arg: each.value for each in node.keywords}
        long = next((word for word in words if word.startswith("--")), words[0] if words else "")
        dest = self._value(given["dest"], scope) if "dest" in given else long.lstrip("-").replace("-", "_")
        action = self._value(given["action"], scope) if "action" in given else None
        usual = {"store_true": False, "store_false": True}.get(str(action))
        parser.defaults[str(dest)] = self._value(given["default"], scope) if "default" in given else usual
        return None

    def _positional(self, node: ast.Call, scope: dict[str, Any]) -> list[Any]:
        if any(isinstance(each, ast.Starred) for each in node.args):
            raise ProfileError(node.lineno, "arguments with * are not read")
        return [self._value(each, scope) for each in node.args]

    def _named(self, node: ast.Call, scope: dict[str, Any]) -> dict[str, Any]:
        if any(each.arg is None for each in node.keywords):
            raise ProfileError(node.lineno, "arguments with ** are not read")
        return {str(each.arg): self._value(each.value, scope) for each in node.keywords}

    def _step(self, line: int, steps: int = 1) -> None:
        self._steps += steps
        if self._steps > MOST_STEPS:
            raise ProfileError(line, "this profile computes for too long")


def _loaded(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body


def _built(name: str, positional: Sequence[Any], named: Mapping[str, Any], line: int) -> Any:
    """What a call of Python's, scapy's or TRex' own makes."""
    if name == "len":
        (of,) = positional
        return of.octets if isinstance(of, Packet) else len(of)
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](*positional)
    if name in HEADER_OCTETS:
        load = named.get("load", positional[0] if positional else "")
        padding = len(load) if name == "Raw" and isinstance(load, str | bytes) else 0
        return Packet((Layer(name, dict(named), line),), padding)
    if name in IGNORED:
        return None
    match name:
        case "STLVM":
            return FieldEngine()
        case "STLScVmRaw" | "CTRexScRaw":
            engine = FieldEngine()
            engine.add(positional[0] if positional else named.get("list_of_commands"), line)
            return engine
        case "STLVmFlowVar":
            return _engine_part("var", positional, named, line)
        case "STLVmWrFlowVar":
            return _engine_part("write", positional, named, line)
        case "STLVmTupleGen":
            return _engine_part("tuple_var", positional, named, line)
        case "STLPktBuilder":
            given = _given(name, _OF_BUILDER, positional, named, line)
            if given.get("pkt_buffer") is not None:
                raise ProfileError(line, "pkt_buffer: only packets that are built here are read")
            packet, engine = given.get("pkt"), FieldEngine()
            engine.add(given.get("vm"), line)
            if not isinstance(packet, Packet):
                raise ProfileError(line, "STLPktBuilder() needs a packet that is built here")
            return packet, engine
        case "STLTXCont" | "STLTXSingleBurst" | "STLTXMultiBurst":
            rates = [key for key in ("pps", "bps_L1", "bps_L2", "percentage") if named.get(key) is not None]
            rate = rates[0] if rates else "pps"
            value = float(named.get(rate, positional[0] if positional else 1))
            if not 0 < value < math.inf:
                raise ProfileError(line, f"{name}({rate}={value:g}) sends nothing that can be measured")
            return Mode(
                kind=name,
                rate=rate,
                value=value,
                packets=int(named.get("total_pkts", 1)) if name == "STLTXSingleBurst" else None,
                line=line,
            )
        case "STLStream":
            built = named.get("packet", positional[0] if positional else None)
            mode = named.get("mode", Mode(kind="STLTXCont", rate="pps", value=1.0, packets=None, line=line))
            if not isinstance(built, tuple) or not isinstance(mode, Mode):
                raise ProfileError(line, "STLStream() needs packet=STLPktBuilder(...) and a mode")
            known = ("packet", "mode", "name", "flow_stats")
            # These two are true by default, and all others false, nought or nothing.
            extras = tuple(
                key
                for key, value in named.items()
                if key not in known and bool(value) is not (key in ("self_start", "enabled"))
            )
            return TrexStream(packet=built[0], engine=built[1], mode=mode, line=line, extras=extras)
        case "STLProfile":
            return positional[0] if positional else named.get("streams")
    raise ProfileError(line, f"{name or 'this'}(): no profile needs this here, or it is not understood")


def _given(
    name: str,
    order: Sequence[str],
    positional: Sequence[Any],
    named: Mapping[str, Any],
    line: int,
    *,
    also: Sequence[str] = (),
) -> dict[str, Any]:
    """The arguments of a call by their names; one that is not understood is refused."""
    if len(positional) > len(order):
        raise ProfileError(line, f"{name}() is called with too many arguments")
    given = dict(zip(order, positional, strict=False)) | dict(named)
    other = next((key for key in given if key not in (*order, *also) and given[key] is not None), None)
    if other is not None:
        raise ProfileError(line, f"{name}({other}=...) is not understood")
    return given


def _engine_part(name: str, positional: Sequence[Any], named: Mapping[str, Any], line: int) -> Any:
    match name:
        case "write":
            return _write(_given(name, _OF_WRITE, positional, named, line), line)
        case "tuple_var":
            return _tuple(_given(name, _OF_TUPLE, positional, named, line), line)
        case "var":
            also = ("value", "value_list", "next_var", "split_to_cores")
            return _variable(_given(name, _OF_VARIABLE, positional, named, line, also=also), line)
    return None  # checksums


def _write(given: Mapping[str, Any], line: int) -> Write:
    if given.get("add_val") not in (None, 0):
        raise ProfileError(line, "add_val of a written variable is not understood")
    if not given.get("is_big", True):
        raise ProfileError(line, "is_big=False: fields are written with their highest octet first")
    return Write(
        name=str(given["fv_name"]),
        place=str(given["pkt_offset"]),
        fixup=int(given.get("offset_fixup", 0)),
        line=line,
    )


def _tuple(given: Mapping[str, Any], line: int) -> list[FlowVar]:
    """Addresses and ports that step together in TRex."""
    prefix = str(given.get("name", "tuple"))
    limit = int(given.get("limit_flows") or 0)
    notes = (("limit_flows", f"all addresses and ports are sent, not the first {limit:,} pairs of them"),)
    ends = (
        ("ip", given.get("ip_min", "0.0.0.1"), given.get("ip_max", "0.0.0.10"), 4),
        ("port", given.get("port_min", 1025), given.get("port_max", 65535), 2),
    )
    return [
        _checked(
            FlowVar(
                name=f"{prefix}.{part}",
                op="inc",
                first=_number(low),
                last=_number(high),
                step=1,
                octets=octets,
                line=line,
                notes=notes if limit and part == "ip" else (),
            )
        )
        for part, low, high, octets in ends
    ]


def _variable(given: Mapping[str, Any], line: int) -> FlowVar:
    if given.get("next_var") is not None:
        raise ProfileError(line, "next_var: variables here step by themselves")
    op = str(given.get("op", "inc"))
    values = tuple(_number(each) for each in given.get("value_list") or ())
    if values and op != "inc":
        raise ProfileError(line, f"a value_list is sent in its order, not by {op}")
    low, high = given.get("min_value", _SMALLEST), given.get("max_value", _LARGEST)
    first = given.get("value", given.get("init_value"))
    if "value" in given:
        low = high = first
    start = high if op == "dec" else low
    notes: tuple[tuple[str, str], ...] = ()
    if first is not None and _number(first) != _number(start) and op != "random" and not values:
        notes = (("init_value", f"begins with {start}, and has the same values"),)
    return _checked(
        FlowVar(
            name=str(given["name"]),
            op=op,
            first=min(values) if values else _number(low),
            last=max(values) if values else _number(high),
            step=int(given.get("step", 1)),
            octets=int(given.get("size", 4)),
            line=line,
            values=values,
            notes=notes,
        )
    )


def _checked(variable: FlowVar) -> FlowVar:
    is_range = 0 <= variable.first <= variable.last and variable.step >= 1
    if not is_range or variable.octets not in (1, 2, 4, 8):
        raise ProfileError(variable.line, f"the range of variable {variable.name} is none")
    return variable


def _number(value: Any) -> int:
    return int(ipaddress.ip_address(value)) if isinstance(value, str) else int(value)
