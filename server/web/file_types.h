// Content types of the page's files. All in the header, for the tool that packs the files: it is
// built before everything else and links nothing of ours.
#pragma once

#include <string>

namespace tacho::server::web {

struct FileType {
  const char* ending;
  const char* content_type;
};
inline constexpr FileType kFileTypes[] = {
    {".html", "text/html; charset=utf-8"},   {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},     {".svg", "image/svg+xml"},
    {".md", "text/markdown; charset=utf-8"}, {".txt", "text/plain; charset=utf-8"},
};

// Null: the page has no such files.
inline const char* FileTypeOf(const std::string& path) {
  for (const FileType& type : kFileTypes) {
    if (path.ends_with(type.ending)) return type.content_type;
  }
  return nullptr;
}

}  // namespace tacho::server::web
