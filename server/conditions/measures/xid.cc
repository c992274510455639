#include "server/conditions/measures/xid.h"

namespace tacho::server::conditions {
namespace {

constexpr Xid kXids[] = {
    {13, "graphics engine exception", Severity::kInfo},
    {31, "memory page fault", Severity::kInfo},
    {32, "corrupted push buffer", Severity::kWarning},
    {38, "driver firmware error", Severity::kWarning},
    {43, "processing stopped by an error of the program", Severity::kInfo},
    {45, "channels torn down, after another error", Severity::kInfo},
    {48, "double-bit ECC error", Severity::kCritical},
    {61, "internal micro-controller breakpoint", Severity::kWarning},
    {62, "internal micro-controller halt", Severity::kCritical},
    {63, "memory row remapped or page retired", Severity::kWarning},
    {64, "memory row not remapped, or page not retired", Severity::kCritical},
    {68, "video processor exception", Severity::kInfo},
    {69, "graphics engine class error", Severity::kInfo},
    {74, "NVLink error", Severity::kCritical},
    {79, "fell off the bus", Severity::kCritical},
    {92, "high rate of single-bit ECC errors", Severity::kWarning},
    {94, "contained ECC error", Severity::kCritical},
    {95, "uncontained ECC error", Severity::kCritical},
    {119, "GSP remote call timed out", Severity::kCritical},
    {120, "GSP error", Severity::kCritical},
    {140, "unrecovered ECC error", Severity::kCritical},
};

}  // namespace

const Xid* FindXid(int number) {
  for (const Xid& xid : kXids) {
    if (xid.number == number) return &xid;
  }
  return nullptr;
}

}  // namespace tacho::server::conditions
