// The program that start-up code runs once memory is ready. Returns the image's exit code: 0 when all went well.
#pragma once

int run_firmware() noexcept;
