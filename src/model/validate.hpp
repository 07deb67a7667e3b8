// The parts of validate(), inside this folder only.
#pragma once

#include <fmt/core.h>

#include "model/program.hpp"

namespace openrknn::model {

inline Error invalid(std::string where, std::string why) {
  return Error{ErrorCode::kFormat, "the program is not valid", std::move(where), std::move(why),
               "build it again; if this persists, the compiler has an error worth reporting"};
}

// The bytes that a tensor covers from the start of its buffer or blob: [lo, lo + length) of `images` images.
struct Region {
  int64_t lo = 0, length = 0, images = 1, batch = 0;
  int64_t end() const { return lo + (images - 1) * batch + length; }
};
Region region_of(const TensorDesc& t);
bool overlap(const Region& a, const Region& b);

Status validate_tensors(const Program& program);
Status validate_buffers(const Program& program);
Status validate_task(const Program& program, const Task& task);
Status validate_tiles(const Program& program, const Task& task);
Status validate_flow(const Program& program);  // every read follows its write; buffers live as long as they are used

}  // namespace openrknn::model
