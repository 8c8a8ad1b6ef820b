// SPDX-License-Identifier: Apache-2.0
// Tests of the router. They need neither devices nor rights, and do not start DPDK.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
