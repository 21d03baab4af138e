// Package pysyntax finds the ends of strings and brackets in Python source.
package pysyntax
