package plaintext

import (
	"fmt"
)

// FormatBytes returns a number of bytes in the largest fitting unit, up to TiB: 1536 is "1.5 KiB".
func FormatBytes(n int64) string {
	x, unit := float64(n), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if x < 1024 {
			break
		}
		x, unit = x/1024, larger
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, unit)
}
