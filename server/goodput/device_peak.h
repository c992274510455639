// The peak of accelerators: dense matrix FLOP/s in bfloat16 (or float16) of one device, as
// frameworks count devices. docs/goodput.md lists it.
//
// Sources: TPUs, jax `jax/_src/tpu_info.py`, per chip, divided by its devices a chip (two on v2, v3
// and 7x, where each core is a device); GPUs, torchtitan `torchtitan/tools/utils.py`.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tacho::server::goodput {

struct DevicePeak {
  absl::string_view kind;  // A TPU's name for itself, or a part of a GPU's name.
  double flops = 0;
  bool exact = false;  // A TPU's: the whole name. Else a part of it.
};

// The most specific of a family comes first.
absl::Span<const DevicePeak> DevicePeaks();

// By the attribute device_kind, in upper or lower case. nullptr: unknown; nothing is guessed.
const DevicePeak* FindDevicePeak(absl::string_view device_kind);

}  // namespace tacho::server::goodput
