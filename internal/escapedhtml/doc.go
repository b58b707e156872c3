// Package escapedhtml executes templates that html/template has escaped when the program was written.
//
// text/template, which executes the templates of html/template, finds methods by their names. A
// program that can call it therefore contains every exported method of every type it uses; the decorum
// command would be 12 MB larger, most of it commands of Redis that it never sends. This package finds
// fields by their names, and two methods (IsZero and IsValid) by interfaces.
//
//	source, err := escapedhtml.Escape(pages, "page") // in a test, which writes it to a file
//	templates, err := escapedhtml.Parse(funcs, source)
//	err = templates.Execute(w, "page", data)
//
// It executes what the pages of decorum use: text, if, with, range over slices and over maps with keys of
// type string, break, continue, template, variables, fields, the functions and, or, not, len,
// printf, eq, ne, lt, le, gt and ge, and functions of the caller. Anything else is an error of Parse or
// Execute, never unescaped text. Its escapers write what those of html/template write.
//
// Begin reading at Templates.Execute. Templates are not changed after Parse, so they are safe for
// concurrent use.
package escapedhtml
