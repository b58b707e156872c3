//go:build !linux

package bolt

// dropPageCache does nothing: see page_cache_and_lock_holder_linux.go.
func dropPageCache(string) {}

// lockHolder says who has the file locked, as far as the system tells.
func lockHolder(string) string { return unknownProcess }
