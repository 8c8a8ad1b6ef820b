// SPDX-License-Identifier: Apache-2.0
// Station 4, port: THE loops, compiled for DPDK's ports with each source of frames that there is. The only file of this
// folder that knows the loops: run/ is compiled without DPDK's headers, and here its templates and the port's bursts
// are inlined into each other.
#include "frame/connections.hpp"
#include "frame/envelope.hpp"
#include "frame/host_mac_source.hpp"
#include "frame/learning_source.hpp"
#include "frame/mix_source.hpp"
#include "frame/source.hpp"
#include "frame/translation.hpp"
#include "port/dpdk_port_inline.hpp"
#include "run/loops.hpp"

namespace evenhand::run {
namespace {

using Loop = std::unique_ptr<TrialLoop>;
using Queues = WorkerQueues<port::DpdkPort>;
using Streams = std::vector<Stream>;
template <class Source>
using Senders = std::vector<Sender<port::DpdkPort, Source>>;

using Plain = frame::TestFrameSource;
using Translated = frame::TranslatedSource;
using Connections = frame::ConnectionSource;
using HostMacs4 = frame::HostMacSource<Plain, plan::IpVersion::v4>;
using HostMacs6 = frame::HostMacSource<Plain, plan::IpVersion::v6>;

}  // namespace

template class WorkerQueues<port::DpdkPort>;

template Loop make_loop(Queues&, Senders<Plain>, Streams);
template Loop make_loop(Queues&, Senders<Translated>, Streams);
template Loop make_loop(Queues&, Senders<Connections>, Streams);
template Loop make_loop(Queues&, Senders<HostMacs4>, Streams);
template Loop make_loop(Queues&, Senders<HostMacs6>, Streams);
template Loop make_loop(Queues&, Senders<frame::TaggedSource<Plain>>, Streams);
template Loop make_loop(Queues&, Senders<frame::TaggedSource<Translated>>, Streams);
template Loop make_loop(Queues&, Senders<frame::TaggedSource<Connections>>, Streams);
template Loop make_loop(Queues&, Senders<frame::TaggedSource<HostMacs4>>, Streams);
template Loop make_loop(Queues&, Senders<frame::TaggedSource<HostMacs6>>, Streams);
template Loop make_loop(Queues&, Senders<frame::MixSource>, Streams);
template Loop make_loop(Queues&, Senders<frame::TaggedSource<frame::MixSource>>, Streams);
template Loop make_loop(Queues&, Senders<frame::TaggedSource<frame::LearningSource>>, Streams);

}  // namespace evenhand::run
