-- import(clock, call, {kind, origin, host, n, …}…) → sum, one character each: takes over
-- what another store held. A call that was made already is not made again: hops of a
-- robots.txt would be there twice. n is how many arguments follow. A clock (h) is hold,
-- whether that is dormant, due, gap, slots, strikes, memo; a URL (u) is its state
-- (q, r or p), lane, rank, at, print, record, and is passed by where it is seen;
-- others (s) are fingerprints that were seen.
local function takeClock(o, i)
  set(o, 'e', moment(ARGV[i]))
  set(o, 'D', tonumber(ARGV[i + 1]))
  setClock(host(o.is.H), i + 2)
end

local function takeURL(o, i)
  local state, lane, at, print, record = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
  if print ~= '' and not seeNew(o, print) then return end
  if state == 'r' then
    rest(o, print, moment(at), record)
  elseif state == 'p' then
    park(o, record)
  elseif at ~= '' then
    putOff(o, lane, moment(at), record)
  else
    put(o, lane, tonumber(ARGV[i + 2]), record)
  end
end

local function take(kind, o, i, n)
  if kind == 'h' then
    takeClock(o, i)
  elseif kind == 'u' then
    takeURL(o, i)
  else
    for k = i, i + n - 1 do seeNew(o, ARGV[k]) end
  end
  touch(o)
end

local again, i, done = meta.is.import == ARGV[2], 3, {}
set(meta, 'import', ARGV[2])
while ARGV[i] do
  local n = tonumber(ARGV[i + 3])
  if not again then take(ARGV[i], meet(ARGV[i + 1], ARGV[i + 2]), i + 4, n) end
  done[#done + 1] = '1'
  i = i + 4 + n
end
return {finish(), table.concat(done)}
