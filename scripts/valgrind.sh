#!/usr/bin/env bash
# Opens, places, runs and closes all models twice under valgrind: not one byte may be lost, no access may be wrong.
# Ten utterances are heard by a stream of each recogniser. Covers the bundled models, and those of ../shared/models where
# they are there.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "valgrind.sh: install valgrind first: apt-get install valgrind" >&2; exit 1; }
cmake --preset release -DBANTAM_TESTS=ON -Wno-dev >/dev/null
cmake --build build/release --target lifecycle_test front_end_test
# GoogleTest's own registry stays reachable until exit; only definite and possible losses are ours.
valgrind --quiet --leak-check=full --show-leak-kinds=definite,possible --errors-for-leak-kinds=definite,possible \
  --error-exitcode=1 build/release/tests/lifecycle_test --gtest_brief=1
valgrind --quiet --leak-check=full --show-leak-kinds=definite,possible --errors-for-leak-kinds=definite,possible \
  --error-exitcode=1 build/release/tests/front_end_test --gtest_brief=1 --gtest_filter='*OpensAndCloses*'
echo "valgrind: no error, nothing lost"
