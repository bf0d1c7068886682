# Lets the services' roles log in, each with the password of its secret.
for role in gateway learner registry; do
  psql --quiet --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" --set=ON_ERROR_STOP=1 \
    --set=role="$role" --set=password="$(cat "/run/secrets/postgres-$role")" <<'SQL'
ALTER ROLE :"role" LOGIN PASSWORD :'password';
SQL
done
