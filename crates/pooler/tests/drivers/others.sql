-- What other clients do meanwhile: they leave settings and statements behind on every server connection.
SET TimeZone TO 'Asia/Kathmandu';
SET DateStyle TO 'SQL, DMY';
SELECT :client_id::int, now()::date;
BEGIN;
SELECT 'another client''s';
\sleep 3 ms
END;
\sleep 5 ms
