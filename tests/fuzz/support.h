// What the fuzz targets share: promises that end the process when they are broken, and the way from a graph or a
// package to results.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bantam/error.h"
#include "graph/graph.h"
#include "import/import.h"
#include "package/writer/package_data.h"

namespace bantam::fuzz {

/// Ends the process with a message unless `promise` holds.
void require(bool promise, const std::string& message);

/// An error must say something, in valid form: no trailing newline.
void require_message(const Error& error);

/// The bytes as text.
std::string_view text_of(std::span<const std::byte> bytes);

/// Fixes every dimension that a model leaves open.
import::Options options_for(const Declaration& declaration);

/// Runs all passes, plans and packs, checking each layer's promise to the next: a verified graph stays one, and the
/// package reader accepts what the compiler writes. Empty when the model is too large to run here or cannot be planned.
format::PackageBytes compile_graph(graph::Graph graph);

/// Opens a package; if that succeeds and it is small, places it between guard pages and canaries and invokes every
/// session twice. Returns whether it was opened.
bool run_package(std::span<const std::byte> bytes);

/// Imports a model, fixing its open dimensions, then compiles and runs it.
void import_and_run(std::span<const std::byte> bytes,
                    Result<graph::Graph> (*importer)(const import::Source&, const import::Options&),
                    Result<Declaration> (*declare)(const import::Source&));

}  // namespace bantam::fuzz
