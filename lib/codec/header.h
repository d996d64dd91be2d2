/* SPDX-License-Identifier: BSD-2-Clause */
/* The record header `unsalt`: its public face is <unsalt/wire.h>, implemented in header.c. */
#ifndef US_CODEC_HEADER_H
#define US_CODEC_HEADER_H
#include <unsalt/wire.h>
#endif
