find_package(zeus REQUIRED COMPONENTS no_such_component)
