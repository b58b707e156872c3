//go:build !linux

package bolt

// dropPageCache does nothing: see page_cache_linux.go.
func dropPageCache(string) {}
