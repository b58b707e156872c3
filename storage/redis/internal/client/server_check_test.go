package client

import "testing"

// Redis from version 7 is accepted, and every version of Valkey and Kvrocks.
func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		info map[string]string
		ok   bool
	}{
		{map[string]string{"redis_version": "7.0.15"}, true},
		{map[string]string{"redis_version": "10.1.0"}, true},
		{map[string]string{"redis_version": "6.2.7"}, false},
		{map[string]string{"redis_version": "7.2.4", "valkey_version": "8.0.0"}, true},
		{map[string]string{"redis_version": "4.0.0", "kvrocks_version": "2.9.0"}, true},
		{map[string]string{}, false},
	} {
		if err := checkServerVersion(tt.info); (err == nil) != tt.ok {
			t.Errorf("%v: %v", tt.info, err)
		}
	}
}
