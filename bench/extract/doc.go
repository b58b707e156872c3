// Package extract measures the time to find the links of a page with decorum's scanner, goquery, the
// tokenizer of x/net/html, and a plain search for href= that does not parse HTML: the lower bound.
//
//	go test -bench Sample -benchtime 2000x ./bench/extract
//	go test -bench PythonDocs -benchtime 530x ./bench/extract
//
// All four read a page in turn, so that the ratios apply on a busy machine, resolve links with
// decorum's own URLs, and keep each URL once. Sample is a page of 20 KiB with 50 links; PythonDocs
// are the pages of the Python documentation in Debian's package python3-doc. Begin reading at
// finders (links_test.go).
package extract
