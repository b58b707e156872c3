package daemon

import (
	"testing"
	"testing/synctest"

	"github.com/decorum-crawler/decorum/storage"
)

// A slowStore takes its time to close.
type slowStore struct {
	*storage.Memory
	closing chan struct{}
}

func (s slowStore) Close() error {
	<-s.closing
	return s.Memory.Close()
}

// While a vault is being closed, which waits for servers that may be silent, it tells what
// was in it; who enters waits, and finds it open.
func TestVaultAnswersWhileItCloses(t *testing.T) {
	dir := stateDir(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		closing := make(chan struct{})
		opened := 0
		v := newVault(dir, func() string { return "" }, func() (stores, error) {
			opened++
			return stores{frontier: slowStore{storage.NewMemory(storage.Config{}), closing}}, nil
		})
		enter := func() {
			if _, err := v.enter(); err != nil {
				t.Error(err)
			}
		}
		enter()
		v.leave()
		go func() {
			if err := v.close(); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		v.latest()
		if v.isElsewhere() {
			t.Error("its place has not changed")
		}
		go enter()
		synctest.Wait()
		if opened != 1 {
			t.Errorf("it was opened %d times before it was closed", opened)
		}
		close(closing)
		synctest.Wait()
		if opened != 2 {
			t.Errorf("it was opened %d times, want once more when it was closed", opened)
		}
		v.leave()
		if err := v.shut(); err != nil {
			t.Error(err)
		}
	})
}
