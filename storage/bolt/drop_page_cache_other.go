//go:build !linux

package bolt

// dropPageCache does nothing: see drop_page_cache_linux.go.
func dropPageCache(string) {}
