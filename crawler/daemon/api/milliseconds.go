package api

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Milliseconds is a duration that JSON shows as whole milliseconds. It is rounded up, so
// that a shortfall of less than a millisecond does not show as 0.
type Milliseconds time.Duration

// MarshalJSON writes a whole number of milliseconds.
func (m Milliseconds) MarshalJSON() ([]byte, error) {
	whole := (time.Duration(m) + time.Millisecond - 1) / time.Millisecond
	return fmt.Append(nil, int64(whole)), nil
}

// UnmarshalJSON reads a whole number of milliseconds. It refuses a number too large for a
// time.Duration (292 years and more), which would wrap and turn a long delay into a short one.
func (m *Milliseconds) UnmarshalJSON(text []byte) error {
	var whole int64
	if err := json.Unmarshal(text, &whole); err != nil {
		return err
	}
	if maxMillis := math.MaxInt64 / int64(time.Millisecond); whole > maxMillis || whole < -maxMillis {
		return fmt.Errorf("%d milliseconds are out of range: expected at most %d", whole, maxMillis)
	}
	*m = Milliseconds(time.Duration(whole) * time.Millisecond)
	return nil
}
