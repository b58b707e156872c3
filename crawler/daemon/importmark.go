package daemon

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// importNote is the crawl's note that its state was imported. It is of this state
// alone, and in no export.
const importNote = "import"

// An importMark says what was imported, and whether it is all there.
type importMark struct {
	Export string `json:"export"` // SHA-256 of the first line, which has the time
	Whole  bool   `json:"whole"`
}

// readMark returns the mark of a state; false if it was not imported.
func readMark(ctx context.Context, frontier store) (m importMark, imported bool, err error) {
	text, err := frontier.ReadNote(ctx, decorum.Origin{}, importNote)
	if err != nil || text == nil {
		return m, false, err
	}
	return m, true, json.Unmarshal(text, &m)
}

func (m importMark) write(ctx context.Context, frontier store) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return errors.Join(frontier.SetNote(ctx, decorum.Origin{}, importNote, text), frontier.Flush(ctx))
}

// mustBeWhole returns an error if only a part of the state was imported: who crawls
// with it would visit pages again that are still to come as seen.
func mustBeWhole(frontier store) error {
	ctx, cancel := context.WithTimeout(context.Background(), redisPatience)
	defer cancel()
	m, imported, err := readMark(ctx, frontier)
	if err == nil && imported && !m.Whole {
		err = usage("only a part of this crawl was imported: repeat decorum frontier import with the whole export")
	}
	return err
}

// isEmpty reports whether a store was never used.
func isEmpty(ctx context.Context, s store) (bool, error) {
	empty := true
	err := s.Origins(ctx, func(storage.OriginInfo) bool {
		empty = false
		return false
	})
	if err != nil || !empty {
		return false, err
	}
	err = s.Notes(ctx, decorum.Origin{}, func(string, []byte) bool {
		empty = false
		return false
	})
	return empty, err
}

// begin marks the state as half imported, if it is empty, and reports whether this
// export is there already.
func (m *importer) begin(ctx context.Context) (whole bool, err error) {
	mark, imported, err := readMark(ctx, m.files.frontier)
	switch {
	case err != nil:
		return false, err
	case imported && mark.Export == m.mark.Export:
		m.again = true
		return mark.Whole, nil
	case imported && !mark.Whole:
		return false, usage("it holds a part of another export: import that one, or into an empty store")
	}
	for _, s := range []store{m.files.frontier, m.files.robots} {
		if empty, err := isEmpty(ctx, s); err != nil {
			return false, err
		} else if !empty {
			return false, usage("it holds a crawl already: import into an empty store, with another --data, or another project or store.redis.prefix")
		}
	}
	return false, errors.Join(m.save(), m.mark.write(ctx, m.files.frontier))
}

// finish is the end of the lines: all must be there, and nothing else.
func (m *importer) finish(ctx context.Context) error {
	if !m.ended {
		return errors.New("the export is cut short: its last line is missing")
	}
	if err := m.verify(ctx); err != nil {
		return err
	}
	if err := errors.Join(m.files.robots.Flush(ctx), m.files.frontier.Flush(ctx)); err != nil {
		return err
	}
	m.mark.Whole = true
	return m.mark.write(ctx, m.files.frontier)
}
