// Package inflate decodes DEFLATE data (RFC 1951) faster than the packages for streams do, because most pages
// are compressed with it: a crawl of long pages by https spends more than a quarter of its processor time there.
//
// Begin reading at Reader.Read. Its inner loop is Reader.decodeFast, which decodes while there is enough input and
// room for what one step can need; decodeSlow decodes a single symbol wherever there is less. Both look up
// symbols in a table that is built for each block.
//
// # Goroutines and locks
//
// The package starts no goroutine and has no locks. A Reader belongs to one goroutine.
package inflate
