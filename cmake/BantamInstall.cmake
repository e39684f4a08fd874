# Installs the command, the public headers, the libraries, a CMake package (bantam::bantam, and bantam::runtime for the
# device half alone) and a pkg-config file. scripts/check_install.sh builds an outside project with both.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(layers GLOBAL PROPERTY BANTAM_INSTALL_TARGETS)
list(REMOVE_ITEM layers bantam_allocations)

# What an application links: files in, sessions out.
add_library(bantam_all INTERFACE)
target_link_libraries(bantam_all INTERFACE bantam_compiler bantam_audio)
set_target_properties(bantam_all PROPERTIES EXPORT_NAME bantam)
add_library(bantam::bantam ALIAS bantam_all)

install(TARGETS ${layers} bantam_simd bantam_all EXPORT bantam ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# What an installation needs and no more, where a build for tests has many programs besides.
add_custom_target(installed DEPENDS ${layers} bantam)
install(DIRECTORY include/bantam DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT bantam NAMESPACE bantam:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/bantam)

configure_package_config_file(cmake/BantamConfig.cmake.in ${CMAKE_BINARY_DIR}/bantam-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/bantam)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/bantam-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/bantam-config.cmake ${CMAKE_BINARY_DIR}/bantam-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/bantam)

list(TRANSFORM layers PREPEND "-l" OUTPUT_VARIABLE BANTAM_PC_LIBRARIES)
list(JOIN BANTAM_PC_LIBRARIES " " BANTAM_PC_LIBRARIES)
# Relative to the file itself, so that the installed tree may be moved (cmake --install --prefix).
file(RELATIVE_PATH BANTAM_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/bantam.pc.in ${CMAKE_BINARY_DIR}/bantam.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/bantam.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
