-- import(clock, call, {kind, origin, host, n, argument × n}…) → summary, 1 for each: adds what another
-- store held. A call with the id of the last one is a repetition, and does nothing: redirects of a
-- robots.txt would be queued twice. Kinds and their arguments:
--
--   h  end of the hold, suspended (1 or 0), due, gap, slots, strikes, memo
--   u  state (q queued, r awaiting its revisit, p parked), lane, rank, at, fingerprint, record; skipped
--      if the seen set has the fingerprint
--   s  fingerprints for the seen set
local function importHostState(o, i)
  setField(o, 'e', parseTime(ARGV[i]))
  setField(o, 'D', tonumber(ARGV[i + 1]))
  setHostState(loadHost(o.fields.H), i + 2)
end

local function importURL(o, i)
  local state, lane, at, fingerprint, record = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
  if fingerprint ~= '' and not addIfUnseen(o, fingerprint) then return end
  if state == 'r' then
    queueRevisit(o, fingerprint, parseTime(at), record)
  elseif state == 'p' then
    parkRecord(o, record)
  elseif at ~= '' then
    queueDelayed(o, lane, parseTime(at), record)
  else
    queueRecord(o, lane, tonumber(ARGV[i + 2]), record)
  end
end

local function importItem(kind, o, i, n)
  if kind == 'h' then
    importHostState(o, i)
  elseif kind == 'u' then
    importURL(o, i)
  else
    for k = i, i + n - 1 do addIfUnseen(o, ARGV[k]) end
  end
  markChanged(o)
end

local isRepeated, i, done = meta.fields.import == ARGV[2], 3, {}
setField(meta, 'import', ARGV[2])
while ARGV[i] do
  local n = tonumber(ARGV[i + 3])
  if not isRepeated then importItem(ARGV[i], findOrAddOrigin(ARGV[i + 1], ARGV[i + 2]), i + 4, n) end
  done[#done + 1] = '1'
  i = i + 4 + n
end
return {saveChanges(), table.concat(done)}
