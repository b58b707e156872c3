package api

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Milliseconds is a duration that JSON shows as milliseconds, rounded up: a
// shortfall of less than one is not none.
type Milliseconds time.Duration

// MarshalJSON writes a whole number.
func (m Milliseconds) MarshalJSON() ([]byte, error) {
	whole := (time.Duration(m) + time.Millisecond - 1) / time.Millisecond
	return fmt.Append(nil, int64(whole)), nil
}

// UnmarshalJSON reads a whole number. One that no duration can hold, of 292 years
// and more, is refused: it would wrap, and a long rest would be a short one.
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
