# SPDX-License-Identifier: Apache-2.0
"""Procedure: learning before the first trial of a direct plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evenhand.base.errors import HostError, RequestError
from evenhand.base.units import format_count
from evenhand.base.validation.typed_fields import check_type, check_types
from evenhand.plan import NO_TAGS, AddressPlan, FrameSize, Imix, IpVersion, SideCounts
from evenhand.procedure.events import Learned, OnEvent, ignore
from evenhand.procedure.tester import OpenTester
from evenhand.trial import LearningResult, learn, name_first


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningChoice:
    """Whether the DUT learns the hosts of a direct plan first, and whether all of them must be reachable."""

    is_skipped: bool = False
    allows_unreachable: bool = False

    def __post_init__(self) -> None:
        check_types(self)


ALL_HOSTS_FIRST = LearningChoice()


def learn_first(
    tester: OpenTester, choice: LearningChoice = ALL_HOSTS_FIRST, *, on_event: OnEvent = ignore
) -> OpenTester:
    """Have the DUT of a direct plan resolve every host, once, before the first trial; gateway plans need none
    of it (R2544-35).

    Returns:
        The tester with what was learnt in its profile.

    Raises:
        HostError: Hosts stayed unreachable, and that was not allowed.
    """
    profile = tester.profile
    if not profile.plan.is_direct or choice.is_skipped:
        return tester
    result = learn(tester.session, directions=profile.directions, on_progress=on_event)
    on_event(Learned(result=result))
    if not choice.allows_unreachable:
        check_reachable(
            result, next_step="Is the DUT's neighbour table large enough? allows_unreachable measures anyway."
        )
    return replace(tester, profile=replace(profile, learning=result))


def check_reachable(result: LearningResult, *, next_step: str) -> None:
    """HostError that names the hosts which the DUT does not reach."""
    if result.is_complete:
        return
    unreachable = [address for side in result.sides.values() for address in side.unreachable]
    named = name_first(unreachable, result.unreachable_hosts)
    host_count = sum(side.host_count for side in result.sides.values())
    raise HostError(
        f"the DUT does not reach {format_count(result.unreachable_hosts)} of {format_count(host_count)}"
        f" hosts: {named}",
        code="procedure.hosts-unreachable",
        where="learning",
        next_step=next_step,
    )


MAX_FRAME_SIZE = 9216
USUAL_MAX_FRAME_SIZE = 1518
"""What every port takes; larger frames need an MTU of more than 1500 octets on all interfaces of the way
(R8219-20)."""
DEFAULT_FRAME_SIZE = 64
RFC_FRAME_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
"""R2544-04 and R5180-09; with IPv6 84 takes the place of 64 (R5180-10)."""
JUMBO_FRAME_SIZES = (4096, 8192, 9216)
"""R5180-09."""
RFC8219_FRAME_SIZES = (64, 128, 256, 512, 768, 1024, 1280, 1518, 1522, 2048, 4096, 8192, 9216)
"""R8219-01; 1522 is 1518 with a VLAN tag."""
FRAME_SIZE_SETS = {"all": RFC_FRAME_SIZES, "jumbo": JUMBO_FRAME_SIZES, "rfc8219": RFC8219_FRAME_SIZES}
"""What `--frame-size` knows by name."""


def choose_frame_size(
    plan: AddressPlan, size: int | None, *, tag_octets: SideCounts = NO_TAGS, where: str = "frame_size"
) -> tuple[int, str | None]:
    """The frame size in octets with the FCS, and a note if another one was put in its place (R5180-10).

    Args:
        tag_octets: Octets of the VLAN tags of each link, which count: the smallest frame is so much larger.

    Raises:
        RequestError: The plan's frames cannot have this size.
    """
    check_type(size, int | None, where=where)
    smallest, version = plan.smallest_frame(tag_octets)
    if size is None:
        return smallest, None
    size = int(size)  # which it is, unless it is a number of NumPy
    # RFC 2544's first size becomes IPv6's (R5180-10), also in lists; any other that is too small is a
    # mistake.
    if size in (DEFAULT_FRAME_SIZE, plan.smallest_frame_size) and size < smallest:
        vlan = " and VLAN tags" if any(tag_octets) else ""
        return (
            smallest,
            f"Frame size {size} cannot hold an IPv{version} test frame with its tag{vlan}: {smallest} is"
            " used instead (R5180-10).",
        )
    largest = _largest_frame_size(plan)
    if not smallest <= size <= largest:
        raise RequestError(
            f"{size} octets: {_test_frame(plan, version)} has {smallest} to {largest} octets with FCS",
            code="procedure.frame-size-out-of-range",
            where=where,
            next_step=f"Use {smallest} or more." if size < smallest else f"Use {largest} or less.",
        )
    return size, None


def choose_frames(
    plan: AddressPlan, size: FrameSize | None, *, tag_octets: SideCounts = NO_TAGS, where: str = "frame_size"
) -> tuple[FrameSize, str | None]:
    """The same where a sequence of sizes may be given instead of one (R6985-01). No size of a sequence is put
    in another's place.

    Raises:
        RequestError: The plan's frames cannot have one of the sizes.
    """
    if not isinstance(size, Imix):
        return choose_frame_size(plan, size, tag_octets=tag_octets, where=where)
    smallest, version = plan.smallest_frame(tag_octets)
    largest = _largest_frame_size(plan)
    vlan = " and its VLAN tags" if any(tag_octets) else ""
    for letter, octets in dict(zip(size.letters, size.octets, strict=True)).items():
        if not smallest <= octets <= largest:
            raise RequestError(
                f"{letter} of {size} is {octets} octets: {_test_frame(plan, version)} has {smallest} to"
                f" {largest} octets with FCS" + vlan,
                code="procedure.frame-size-out-of-range",
                where=where,
                next_step="Use letters of other sizes, or your own sizes:"
                f" imix:AAAFG:A={smallest}:F=1280:G={largest}.",
            )
    return size, None


def _largest_frame_size(plan: AddressPlan) -> int:
    """The largest frame size that can be asked for: a translator makes frames larger on one side."""
    return MAX_FRAME_SIZE - max(side.added_octets for part in plan.plans for side in part.sides)


def _test_frame(plan: AddressPlan, version: IpVersion) -> str:
    """`an IPv6 test frame`; where the DUT translates, a size is that of no version alone."""
    is_translated = any(part.is_translated for part in plan.plans)
    return f"a test frame of {plan.title}" if is_translated else f"an IPv{version} test frame"
