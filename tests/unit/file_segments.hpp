// Segments of files and of memory, without an engine.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "device/file/disk.hpp"
#include "memory/segment_state.hpp"

namespace weft::core::test {

using SegmentPtr = std::shared_ptr<SegmentState>;

inline SegmentPtr segment_of(const Memory& memory) {
  auto allocation = Allocation::make(memory);
  EXPECT_TRUE(allocation) << allocation.error().to_string();
  return std::make_shared<SegmentState>(1, nullptr, std::move(*allocation), Place{}, host_device());
}

inline SegmentPtr segment_of(const std::shared_ptr<OpenFile>& file) {
  const Memory stand_in = Memory::adopt(file->address(), file->size(), file);
  const Place place{file->direct() ? MemoryKind::file : MemoryKind::buffered_file};
  return std::make_shared<SegmentState>(
      2, nullptr, *Allocation::make(file->read_only() ? stand_in.read_only() : stand_in), place,
      file->disk());
}

inline Bytes bytes_of(const SegmentPtr& memory) {
  return {memory->address(), memory->size()};
}

inline std::shared_ptr<OpenFile> must_open(const Memory& memory) {
  auto opened = OpenFile::open(memory);
  EXPECT_TRUE(opened) << opened.error().to_string();
  return *opened;
}

}  // namespace weft::core::test
