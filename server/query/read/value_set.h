// Which columns of values an answer has: an enumerator each, of fewer than 32.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::query {

template <typename Enum>
class ValueSet {
 public:
  ValueSet() : bits_(~uint32_t{0}) {}  // All.

  // Those that a request's field lists, or all if it lists none. `is_valid` is the enum's own.
  //   INVALID_ARGUMENT  one is unspecified or not known; the text names the field.
  static absl::StatusOr<ValueSet> Of(const google::protobuf::RepeatedField<int>& listed,
                                     bool (*is_valid)(int), const std::string& field) {
    ValueSet set;
    if (listed.empty()) return set;
    set.bits_ = 0;
    for (const int value : listed) {
      if (value == 0 || !is_valid(value)) {
        return errors::InvalidFieldError(field, "has a value that is not known here");
      }
      set.bits_ |= uint32_t{1} << value;
    }
    return set;
  }

  bool Has(Enum value) const { return (bits_ >> value & 1) != 0; }

 private:
  uint32_t bits_;
};

}  // namespace tacho::server::query
