# What `cmake --install` gives: the program and the demo model. The C++ package follows in src/ once it is exported.
install(TARGETS halfbyte RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY models/demo DESTINATION ${CMAKE_INSTALL_DATADIR}/halfbyte/models)
