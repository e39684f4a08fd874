# What is tested is optimised, and watched by sanitizers; the tests themselves need not be, and compile in a third of the
# time.
function(bantam_leave_unoptimised target)
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O0>)
  if(BANTAM_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=address,undefined)
  endif()
endfunction()

# Sanitizers find the same whether code is optimised or not, and what computes little compiles in half the time without.
function(bantam_sanitize_unoptimised target)
  if(BANTAM_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O0>)
  endif()
endfunction()

# For what reads, rewrites and writes files once: it takes a twentieth longer, with its passes up to a fifth (`inspect`
# and `plan` of networks), but half as long to compile.
function(bantam_optimise_little target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Most of the time that a source of the host takes to compile are headers that its neighbours have too. In a group, names
# in anonymous namespaces must differ.
function(bantam_compile_in_groups)
  set_target_properties(${ARGV} PROPERTIES UNITY_BUILD ${BANTAM_UNITY} UNITY_BUILD_BATCH_SIZE 10)
endfunction()

# The test is one of those that run `optimised` or `sanitized`.
function(bantam_run_test test how)
  add_dependencies(${how}_tests ${test})
  set_property(TEST ${test} APPEND PROPERTY LABELS ${how})
endfunction()

# A layer of the house is a folder under src/ and a static library bantam_<name>.
#
#   bantam_layer(NAME folder [FREESTANDING] [SEARCHES] [CONVERTS] [OPTIMISED_TESTS] [DEPENDS target ...]
#                [TEST_DEPENDS target ...] [EXCLUDE regex])
#
# All *.cpp below the folder belong to the library, except *_test.cpp and *_bench.cpp: those become, per layer, the
# programs <name>_test (GoogleTest) and <name>_bench (Google Benchmark). Files named *_simd.cpp are compiled once per
# instruction set by Highway's foreach_target. Adding a file needs no edit of a build file.
#
# SEARCHES marks layers of the host that compute for long and so are optimised under sanitizers too; CONVERTS those whose
# time is that of reading and writing, which are optimised little.
# Tests of layers carry the label `sanitized` and are what the target `sanitized_tests` builds, together with those of the
# whole system that go through the most code. OPTIMISED_TESTS marks numerics, where the optimiser may show a fault that a
# sanitizer build hides: these tests, and those of the whole system, carry the label `optimised` and are what the target
# `optimised_tests` builds.
function(bantam_layer name folder)
  cmake_parse_arguments(ARG "FREESTANDING;SEARCHES;CONVERTS;OPTIMISED_TESTS" "EXCLUDE" "DEPENDS;TEST_DEPENDS" ${ARGN})
  file(GLOB_RECURSE all_sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  if(ARG_EXCLUDE)
    list(FILTER all_sources EXCLUDE REGEX "${ARG_EXCLUDE}")
  endif()
  set(tests ${all_sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  set(benches ${all_sources})
  list(FILTER benches INCLUDE REGEX "_bench\\.cpp$")
  set(sources ${all_sources})
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cpp$")
  # Support code for tests only lives in folders called testing/.
  set(support ${sources})
  list(FILTER support INCLUDE REGEX "/testing/")
  list(FILTER sources EXCLUDE REGEX "/testing/")
  if(NOT BANTAM_SIMD)
    list(FILTER sources EXCLUDE REGEX "_simd\\.cpp$")
  endif()
  # They include themselves, once per instruction set, so each is a group of its own.
  set(vectorised ${sources})
  list(FILTER vectorised INCLUDE REGEX "_simd\\.cpp$")
  set_property(SOURCE ${vectorised} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    # Highway counts AES to SSE4 and, where the baseline lacks it, compiles every kernel in scalar form too, which no
    # supported processor would run. Compilers use AES only where it is asked for by name, and nothing does.
    set_property(SOURCE ${vectorised} APPEND PROPERTY COMPILE_OPTIONS -maes -mpclmul)
  endif()
  if(BANTAM_SANITIZE MATCHES "address")
    # Highway's vectors are values, thousands of them in a kernel; watching their scopes takes most of the compilation.
    set_property(SOURCE ${vectorised} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize-address-use-after-scope)
  endif()
  if(NOT sources)
    message(STATUS "layer ${name}: no sources, left out")
    return()
  endif()

  add_library(bantam_${name} STATIC ${sources})
  target_include_directories(
    bantam_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                          $<INSTALL_INTERFACE:include>)
  target_link_libraries(bantam_${name} PUBLIC ${ARG_DEPENDS} PRIVATE $<BUILD_INTERFACE:bantam_warnings>)
  set_target_properties(bantam_${name} PROPERTIES EXPORT_NAME ${name})
  if(NOT BANTAM_FREESTANDING_ONLY)
    set_target_properties(bantam_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  add_library(bantam::${name} ALIAS bantam_${name})
  if(ARG_FREESTANDING)
    # The contract of the device half, kept on the host too so that a slip shows at once.
    target_compile_options(bantam_${name} PRIVATE -fno-exceptions -fno-rtti -fno-threadsafe-statics)
    set_property(GLOBAL APPEND PROPERTY BANTAM_FREESTANDING_TARGETS bantam_${name})
  else()
    bantam_compile_in_groups(bantam_${name})
    if(ARG_CONVERTS)
      bantam_optimise_little(bantam_${name})
    endif()
    if(NOT ARG_SEARCHES)
      bantam_sanitize_unoptimised(bantam_${name})
    endif()
  endif()
  set_property(GLOBAL APPEND PROPERTY BANTAM_INSTALL_TARGETS bantam_${name})

  if(BANTAM_TESTS AND support)
    add_library(bantam_${name}_testing STATIC ${support})
    target_link_libraries(bantam_${name}_testing PUBLIC bantam_${name} ${ARG_TEST_DEPENDS} GTest::gtest
                          PRIVATE bantam_warnings)
    if(NOT ARG_FREESTANDING)
      bantam_leave_unoptimised(bantam_${name}_testing)
      bantam_compile_in_groups(bantam_${name}_testing)
    endif()
  endif()
  if(BANTAM_TESTS AND tests)
    add_executable(${name}_test ${tests})
    bantam_leave_unoptimised(${name}_test)
    bantam_compile_in_groups(${name}_test)
    target_link_libraries(${name}_test PRIVATE bantam_${name} bantam_warnings ${ARG_TEST_DEPENDS} GTest::gtest_main
                                               GTest::gmock)
    if(support)
      target_link_libraries(${name}_test PRIVATE bantam_${name}_testing)
    endif()
    add_test(NAME ${name}_test COMMAND ${name}_test)
    set_tests_properties(${name}_test PROPERTIES WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} TIMEOUT ${BANTAM_TEST_SECONDS})
    bantam_run_test(${name}_test sanitized)
    if(ARG_OPTIMISED_TESTS)
      bantam_run_test(${name}_test optimised)
    endif()
  endif()
  if(BANTAM_BENCHMARKS AND benches)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE bantam_${name} bantam_warnings benchmark::benchmark_main)
    if(support)
      target_link_libraries(${name}_bench PRIVATE bantam_${name}_testing)
    endif()
  endif()
endfunction()
