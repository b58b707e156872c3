//go:build !linux

package bolt

// dropPageCache does nothing: see page_cache_and_lock_holder_linux.go.
func dropPageCache(string) {}

// lockHolder returns unknownProcess: only Linux has /proc/locks.
func lockHolder(string) string { return unknownProcess }
