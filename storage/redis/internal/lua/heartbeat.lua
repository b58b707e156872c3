-- heartbeat(clock, worker, expiresAfter, joining, leaving, resetIfReached, maxPages, maxBytes, maxTime,
-- wanted, visited, received, seq) → summary, and numbers in one string: workers, pages granted to this
-- one, and 1 each if the limit of pages, bytes, time is reached; or 'gone' if the worker has expired.
-- The numbers of a worker are totals since it joined, so that a repeated call changes nothing. A report
-- with a lower seq than an earlier one changes nothing: it would withdraw grants that are in use.
--
-- Fields of u: pages and bytes of all workers, out pages granted and not visited, time in which a
-- worker worked, last heartbeat. Fields of w:WORKER: p pages granted, u visited, b bytes, i seq.
local totals, worker, expiresAfter = loadHash('u'), ARGV[2], tonumber(ARGV[3])
local joining, leaving, resetIfReached = ARGV[4] == '1', ARGV[5] == '1', ARGV[6] == '1'
local maxPages, maxBytes, maxTime = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])

-- removeWorker removes a worker. If it is dead, its granted pages count as visited.
local function removeWorker(name, dead)
  local status = loadHash('w:' .. name)
  local unused = getNumber(status, 'p') - getNumber(status, 'u')
  addToField(totals, 'out', -unused)
  if dead then addToField(totals, 'pages', unused) end
  call('DEL', status.key)
  call('ZREM', keyPrefix .. 'w', name)
  hashes['w:' .. name] = nil
end

-- isReached returns 1 if a limit is reached, otherwise 0.
local function isReached(limit, field) return limit > 0 and getNumber(totals, field) >= limit and 1 or 0 end

for _, name in ipairs(call('ZRANGEBYSCORE', keyPrefix .. 'w', '-inf', now - expiresAfter, 'LIMIT', 0, 50)) do
  removeWorker(name, true)
end
if not joining and not call('ZSCORE', keyPrefix .. 'w', worker) then return {saveChanges(), 'gone'} end

local status = loadHash('w:' .. worker)

-- grantPages sets how many pages the worker may visit. One call grants at most a quarter of the
-- remaining pages, so that some are left for the others.
local function grantPages(wanted, visited)
  local extra = wanted - getNumber(status, 'p')
  if maxPages > 0 then extra = math.min(extra, math.max(0, math.ceil((maxPages - getNumber(totals, 'pages') - getNumber(totals, 'out')) / 4))) end
  wanted = math.max(getNumber(status, 'p') + extra, visited)
  addToField(totals, 'out', wanted - getNumber(status, 'p'))
  setField(status, 'p', wanted)
end

-- applyStatus adds the report to the totals.
local function applyStatus(wanted, visited, received, seq)
  if resetIfReached and isReached(maxPages, 'pages') + isReached(maxBytes, 'bytes') + isReached(maxTime, 'time') > 0 then
    setField(totals, 'pages', 0)
    setField(totals, 'bytes', 0)
    setField(totals, 'time', 0)
  end
  if now - getNumber(totals, 'last') < expiresAfter then addToField(totals, 'time', now - getNumber(totals, 'last')) end
  setField(totals, 'last', now)
  setField(status, 'i', seq)
  addToField(totals, 'pages', visited - getNumber(status, 'u'))
  addToField(totals, 'out', getNumber(status, 'u') - visited)
  setField(status, 'u', visited)
  addToField(totals, 'bytes', received - getNumber(status, 'b'))
  setField(status, 'b', received)
  grantPages(wanted, visited)
  call('ZADD', keyPrefix .. 'w', now, worker)
  if leaving then removeWorker(worker, false) end
end

local seq = tonumber(ARGV[13])
if seq >= getNumber(status, 'i') then applyStatus(tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12]), seq) end
return {saveChanges(), table.concat({call('ZCARD', keyPrefix .. 'w'), getNumber(status, 'p'), isReached(maxPages, 'pages'), isReached(maxBytes, 'bytes'),
  isReached(maxTime, 'time')}, ' ')}
