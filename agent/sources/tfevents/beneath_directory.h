// Opens what lies below a directory, and nothing else.
//
// Anybody who writes into a log directory can make links in it. The agent can often read more than
// they can, so a link must not turn other files into somebody's metrics: links are followed as long
// as they end below the directory, absolute ones too.
#pragma once

#include <string>

namespace tacho::agent {

// One thread.
class BeneathDirectory {
 public:
  explicit BeneathDirectory(std::string path) : path_(std::move(path)) {}
  BeneathDirectory(const BeneathDirectory&) = delete;
  BeneathDirectory& operator=(const BeneathDirectory&) = delete;
  ~BeneathDirectory() { Rest(); }

  // As open(2), close-on-exec. `relative` has no slash at its beginning. -1: the reason is in
  // errno; EXDEV is a way that leads out.
  int Open(const std::string& relative, int flags);
  // The directory itself could not be opened when Open() last failed.
  bool is_missing() const { return is_missing_; }

  // Closes what is held between calls of Open(). Otherwise nobody could unmount the directory's
  // file system.
  void Rest();

  const std::string& path() const { return path_; }

 private:
  // Below the directory by names; `no_links` takes no link at all.
  int OpenBeneath(const std::string& relative, int flags, bool no_links) const;
  // Returns the path below the directory once all links are resolved; empty if they lead out.
  std::string Resolve(const std::string& relative) const;

  const std::string path_;
  int descriptor_ = -1;
  bool is_missing_ = false;
};

}  // namespace tacho::agent
