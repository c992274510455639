// Macros that hand errors on to the caller.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status of an expression from the enclosing function unless it is OK.
//
//   TACHO_RETURN_IF_ERROR(file.Write(bytes));
#define TACHO_RETURN_IF_ERROR(...)                                                            \
  do {                                                                                        \
    if (::absl::Status tacho_status = (__VA_ARGS__); !tacho_status.ok()) return tacho_status; \
  } while (false)

// Assigns the value of an expression of type StatusOr, or returns its status from the enclosing
// function.
//
//   TACHO_ASSIGN_OR_RETURN(const LayoutPtr layout, store->FindLayout(job, id));
#define TACHO_ASSIGN_OR_RETURN(target, ...) \
  TACHO_ASSIGN_OR_RETURN_IMPL(TACHO_STATUS_NAME(tacho_or_, __LINE__), target, __VA_ARGS__)

#define TACHO_ASSIGN_OR_RETURN_IMPL(result, target, ...) \
  auto result = (__VA_ARGS__);                           \
  if (!result.ok()) return std::move(result).status();   \
  target = *std::move(result)

#define TACHO_STATUS_NAME_JOIN(a, b) a##b
#define TACHO_STATUS_NAME(a, b) TACHO_STATUS_NAME_JOIN(a, b)
