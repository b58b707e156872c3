package robots

import "fmt"

// A Dialect is one reading of robots.txt. Engines differ in how they choose a
// group and in what they make of odd lines.
type Dialect uint8

// The dialects.
const (
	// Google follows Google's documentation and RFC 9309. Crawl-delay, which
	// Google ignores, is honoured as an extension.
	Google Dialect = iota
)

// ParseDialect returns the dialect of that name.
func ParseDialect(name string) (Dialect, error) {
	switch name {
	case "google":
		return Google, nil
	case "yandex", "google-oss":
		return Google, fmt.Errorf("robots dialect %q is not supported yet", name)
	}
	return Google, fmt.Errorf("unknown robots dialect %q: want google", name)
}

// String returns the name of the dialect.
func (d Dialect) String() string {
	if d == Google {
		return "google"
	}
	return fmt.Sprintf("Dialect(%d)", uint8(d))
}
