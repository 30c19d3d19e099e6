// The only way to asio in Weft. asio decides how it allocates by what the standard library has
// defined so far, so a standard header has to come first, in every file alike: else one file frees
// with free() what another took with operator new.
#pragma once

// clang-format off
#include <cstddef>

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#ifndef ASIO_NO_DEPRECATED
#define ASIO_NO_DEPRECATED
#endif
#include <asio/buffer.hpp>
#include <asio/basic_socket_acceptor.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
// clang-format on
