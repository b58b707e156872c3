// Package extract measures how long the links of a page take to find, for
// decorum's scanner, goquery and the tokenizer of x/net/html, and for a plain
// search for href= that understands nothing of HTML: the least that can be.
//
//	go test -bench Sample -benchtime 2000x ./bench/extract
//	go test -bench PythonDocs -benchtime 530x ./bench/extract
//
// All four read a page in turn, so that ratios hold on a busy machine, resolve
// what they find with decorum's own URLs, and keep each URL once. One page is of
// 20 KiB with 50 links; the others are those of the Python documentation where
// Debian's python3-doc puts them.
package extract
