//go:build !unix

package connlimit

import "testing"

// limitDescriptors skips the test, because this system has no limit to set.
func limitDescriptors(t *testing.T) { t.Skip("the limit of descriptors cannot be set here") }
