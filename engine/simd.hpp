// SPDX-License-Identifier: Apache-2.0
// The vector instructions of x86 as functions, AVX2 and AVX-512 among them; nothing on other CPUs.
#pragma once

#if defined(__x86_64__)
// GCC 12 warns of the vectors that its own header leaves undefined on purpose (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif
