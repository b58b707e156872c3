// Package memory has a storage.Store in memory, for tests and for crawls that need not
// survive their process. It bounds the number of URLs, for everything that it knows of
// them stays in memory.
//
// Begin reading at Store. It starts no goroutine, and has one lock, Store.mu.
package memory
