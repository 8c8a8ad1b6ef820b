# SPDX-License-Identifier: Apache-2.0
"""Many routes in the scripts of `dut setup`: in a file beside the script, in the system's own words, which it
reads in one go."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evenhand.dut.description import DutSetup
from evenhand.dut.many_routes import PROTOCOL, ManyRoutes, batch_lines
from evenhand.dut.script import RoutesFile, Step
from evenhand.plan import plan_file_name

Line = Callable[[ManyRoutes, str], str]
"""A line for one prefix."""
_WAITS_S = 120
"""How long a routing daemon may take to hand a million routes to the kernel."""


def _file(
    setup: DutSetup, many: ManyRoutes, line: Line, *, end: str = "", begin: str = "", is_undo: bool = False
) -> RoutesFile:
    """Its name, and what it has. What takes the routes back has a name of its own: the file of the set-up may
    still lie on the DUT."""

    def lines() -> Iterator[str]:
        yield begin
        for text in many.prefixes.texts():
            yield f"{line(many, text)}\n"
        yield end

    return RoutesFile(name=_name(setup, many, is_undo=is_undo), lines=lines)


def _name(setup: DutSetup, many: ManyRoutes, *, is_undo: bool = False) -> str:
    return f"evenhand-{plan_file_name(setup.plan.name)}-{many.side}{'-undo' if is_undo else ''}.routes"


def _purpose(many: ManyRoutes) -> str:
    return (
        f"{many.prefixes.count:,} routes to the hosts of the {many.side} side, by the tester's gateway, from"
        " a file beside this script."
    )


def _notes(many: ManyRoutes, file: RoutesFile) -> tuple[str, ...]:
    return (_copied(file), f"{many.cost}.")


def _copied(file: RoutesFile) -> str:
    return f"Copy {file.name} to the DUT first, into the folder in which this script is run."


def _is_there(file: RoutesFile) -> str:
    missing = f"{file.name} is not in this folder: copy it here first"
    return f"test -r {file.name} || {{ echo '{missing}' >&2; exit 1; }}"


def _counted(many: ManyRoutes, count: str, *, waits_s: int = 1) -> str:
    """Commands that say so if there are not as many as in the file.

    Args:
        count: Prints how many there are, and succeeds.
    """
    wanted, name = many.prefixes.count, many.interface
    return (
        f'tries={waits_s}; while there=$({count}); test "$there" -lt {wanted} && test $tries -gt 1;'
        " do tries=$((tries - 1)); sleep 1; done;"
        f' test "$there" -ge {wanted} || {{ echo "NOT as intended, routes over {name}: there are $there of'
        f' {wanted}: the table is too small, or the gateway is not on its link" >&2; wrong=yes; }}'
    )


def _count_in_kernel(many: ManyRoutes) -> str:
    return f"ip -{many.prefixes.version} route show via {many.next_hop} dev {many.interface} | wc -l"


def linux_many(setup: DutSetup, many: ManyRoutes) -> Step:
    """`ip -batch`, with a mark by which they are taken away."""
    version = many.prefixes.version
    flush = f"ip -{version} route flush proto {PROTOCOL} via {many.next_hop}"
    file = RoutesFile(name=_name(setup, many), lines=lambda: batch_lines(many))
    show = f"ip -{version} route show proto {PROTOCOL} via {many.next_hop} dev {many.interface}"
    return Step(
        part="routes",
        purpose=_purpose(many),
        notes=_notes(many, file),
        do=(_is_there(file), flush, f"ip -{version} -batch {file.name}", _counted(many, f"{show} | wc -l")),
        undo=(flush,),
        files=(file,),
    )


def frr_many(setup: DutSetup, many: ManyRoutes) -> Step:
    """Lines of FRR's configuration, which vtysh reads."""
    word = "ip" if many.prefixes.version == 4 else "ipv6"

    def line(of: ManyRoutes, text: str) -> str:
        return f"{word} route {text} {of.next_hop} {of.interface}"

    file = _file(setup, many, line)
    back = _file(setup, many, lambda of, text: f"no {line(of, text)}", is_undo=True)
    return Step(
        part="routes",
        purpose=_purpose(many),
        notes=_notes(many, file),
        do=(
            _is_there(file),
            f"vtysh -f {file.name}",
            _counted(many, _count_in_kernel(many), waits_s=_WAITS_S),
        ),
        undo=(_is_there(back), f"vtysh -f {back.name}"),
        files=(file,),
        undo_files=(back,),
        undo_notes=(_copied(back),),
    )


def bird_many(setup: DutSetup, many: ManyRoutes, *, include: str) -> Step:
    """A static protocol in a file of BIRD's own.

    Args:
        include: The line of bird.conf by which BIRD reads such files.
    """
    name = f"{plan_file_name(setup.plan.name)}_{many.side}"
    place = f"$(dirname $bird_conf)/evenhand-{name}.conf"
    file = _file(
        setup,
        many,
        lambda of, text: f"  route {text} via {of.next_hop};",
        begin=f"protocol static evenhand_{name} {{\n  ipv{many.prefixes.version} {{ preference 220; }};\n",
        end="}\n",
    )
    return Step(
        part="routes",
        purpose=_purpose(many),
        notes=_notes(many, file),
        do=(
            _is_there(file),
            f"cp {file.name} {place}",
            f"grep -qxF '{include}' $bird_conf || echo '{include}' >> $bird_conf",
            "reconfigure",
            _counted(many, _count_in_kernel(many), waits_s=_WAITS_S),
        ),
        undo=(
            f"rm -f {place}",
            "ls $(dirname $bird_conf)/evenhand-*.conf > /dev/null 2>&1"
            f" || {{ grep -vxF '{include}' $bird_conf > $evenhand/bird; cat $evenhand/bird > $bird_conf;"
            " rm -f $evenhand/bird; }",
            "reconfigure",
        ),
        files=(file,),
    )


def vpp_many(setup: DutSetup, many: ManyRoutes) -> Step:
    """Lines of vppctl, which VPP reads itself."""

    def line(verb: str) -> Line:
        return lambda of, text: f"ip route {verb} {text} via {of.next_hop} {of.interface}"

    file, back = _file(setup, many, line("add")), _file(setup, many, line("del"), is_undo=True)
    table = "ip fib" if many.prefixes.version == 4 else "ip6 fib"
    count = (
        f"vppctl show {table} < /dev/null | grep -c 'via {many.next_hop} {many.interface}' || true"  # 0 fails
    )
    return Step(
        part="routes",
        purpose=_purpose(many),
        notes=(
            *_notes(many, file),
            "VPP's heap must have room for them: memory { main-heap-size 4G } in startup.conf.",
        ),
        do=(_is_there(file), f'vpp exec "$PWD/{file.name}"', _counted(many, count)),
        undo=(_is_there(back), f'vpp exec "$PWD/{back.name}"'),
        files=(file,),
        undo_files=(back,),
        undo_notes=(_copied(back),),
    )


def junos_many(setup: DutSetup, many: ManyRoutes) -> Step:
    """Statements, which the configuration mode loads."""
    table = "static" if many.prefixes.version == 4 else "rib inet6.0 static"

    def line(verb: str, way: str) -> Line:
        return lambda of, text: f"{verb} routing-options {table} route {text}{way}"

    file = _file(setup, many, line("set", f" next-hop {many.next_hop}"))
    back = _file(setup, many, line("delete", ""), is_undo=True)
    shown = "inet.0" if many.prefixes.version == 4 else "inet6.0"
    return Step(
        part="routes",
        purpose=_purpose(many),
        notes=(
            _copied_to_junos(file),
            f"Count them after the commit: show route summary table {shown}. A forwarding engine that has"
            " no room for all of them says so in the log only (show log messages | match resource).",
        ),
        do=(f"load set /var/tmp/{file.name}",),
        undo=(f"load set /var/tmp/{back.name}",),
        files=(file,),
        undo_files=(back,),
        undo_notes=(_copied_to_junos(back),),
    )


def _copied_to_junos(file: RoutesFile) -> str:
    return f"Copy {file.name} to /var/tmp on the DUT first, such as with scp."
