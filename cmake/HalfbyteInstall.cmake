# What `cmake --install` gives: the program, the demo model, and the C++ library as the package that find_package(halfbyte) finds.
include(CMakePackageConfigHelpers)

install(TARGETS halfbyte RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES packaging/halfbyte.service DESTINATION lib/systemd/system)
install(DIRECTORY models/demo DESTINATION ${CMAKE_INSTALL_DATADIR}/halfbyte/models)

install(TARGETS libhalfbyte EXPORT halfbyteTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/halfbyte DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(HALFBYTE_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/halfbyte")
install(EXPORT halfbyteTargets NAMESPACE halfbyte:: DESTINATION "${HALFBYTE_PACKAGE_DIR}")
configure_package_config_file(packaging/halfbyteConfig.cmake.in "${CMAKE_BINARY_DIR}/package/halfbyteConfig.cmake"
                              INSTALL_DESTINATION "${HALFBYTE_PACKAGE_DIR}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/package/halfbyteConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/package/halfbyteConfig.cmake" "${CMAKE_BINARY_DIR}/package/halfbyteConfigVersion.cmake"
        DESTINATION "${HALFBYTE_PACKAGE_DIR}")
