"""The comparison with other libraries: the methods, the data sets, and how a method is measured."""
