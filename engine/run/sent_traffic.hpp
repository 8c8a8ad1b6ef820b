// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: what trials of an opened tester send and what arrives, and whether its links can carry frames of
// that length. Needs no port.
#pragma once

#include "frame/envelope.hpp"
#include "frame/traffic.hpp"
#include "plan/per_direction.hpp"
#include "run/request.hpp"

namespace evenhand::run {

/// What is around the frames of a side, before it is known which MACs a tunnel has.
[[nodiscard]] frame::Envelope envelope_of(const PortRequest& port);

/// frame::traffic_of() determines what arrives. A mix has one kind for each of its classes.
[[nodiscard]] frame::DirectionTraffic traffic_of(const OpenRequest& request, plan::Direction direction);

/// Throws Fault{bad_frame_size} where frames are too long on a link (frame::check_length), or, unless there is a mix,
/// too short. frame::check_mix() refuses classes that are too short.
void check_frame_sizes(const OpenRequest& request);

}  // namespace evenhand::run
