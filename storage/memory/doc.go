// Package memory is the storage engine for tests and for crawls whose state need not survive their
// process. It keeps everything that it knows of a URL in memory, and therefore limits the number of
// URLs: Add and Import beyond Config.MaxURLs return storage.ErrFull.
//
//	store := memory.New(memory.Config{})
//	defer store.Close()
//
// Begin reading at Store, in store.go. A Store has an originQueue for each origin, and package
// storage/internal/schedule decides which host and origin is next. Besides the methods of
// storage.Store, storage.Inspector and storage.Importer it has LeaseFromHost, for replays, and
// ForgetOriginURLs, for stores that queue a few URLs at a time.
//
// The package starts no goroutine. It has one lock, Store.mu, which every exported method holds
// during the call; the functions that a caller passes in are called with it and must not call the
// Store. It writes nothing to disk.
package memory
