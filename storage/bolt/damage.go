package bolt

import "fmt"

// maxReports is how many damaged places are remembered, so that each is reported once.
const maxReports = 1000

// A damageReporter says what is damaged in a file: in errors, and to Options.OnDamaged. It
// requires the lock of its store.
type damageReporter struct {
	path      string
	onDamaged func(error)
	reported  map[string]bool // places in the file that onDamaged was told of
}

// errorf returns an error that says what is wrong in the file.
func (d *damageReporter) errorf(format string, args ...any) error {
	return fmt.Errorf("%s is damaged: %s: restore it from a backup, or move it away to begin anew",
		d.path, fmt.Sprintf(format, args...))
}

// reportOnce reports damage in a place of the file the first time.
func (d *damageReporter) reportOnce(place, format string, args ...any) {
	if d.reported[place] {
		return
	}
	if d.reported == nil || len(d.reported) >= maxReports {
		d.reported = make(map[string]bool)
	}
	d.reported[place] = true
	d.onDamaged(fmt.Errorf("%s is damaged: %s", d.path, fmt.Sprintf(format, args...)))
}

// reportQuarantinedURL reports that a record of a URL was set aside.
func (d *damageReporter) reportQuarantinedURL(cause error) {
	d.onDamaged(fmt.Errorf("%s: one URL is set aside: %w", d.path, cause))
}
